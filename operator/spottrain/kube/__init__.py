"""The only package that talks to the API server: requests, caches, snapshots out, plans in."""
