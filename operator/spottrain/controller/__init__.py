"""The process: kopf's events and our reflectors fill a queue, whose workers run observe → decide → apply."""
