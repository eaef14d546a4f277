"""`make demo`: a training run loses two of its nodes and ends as if nothing had happened.

::

    settings ─► target (the lab, or the current cluster) ─► site: kubectl, images, store
    site ─► install ─► play: jobs, faults ─► gang (watches and logs, live) ─► facts ─► summary, table, verdict

`lines`, `facts`, `manifests`, `summary`, `table` and `verdict` are pure.
"""
