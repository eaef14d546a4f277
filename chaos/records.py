"""The lineages that the jobs left in the store."""

from collections import defaultdict

from chaos.jobs import JobRun
from demo.bucket import Bucket
from spottrain.checkpoint import layout, lineage
from spottrain.checkpoint.lineage import Record


def read(bucket: Bucket, jobs: list[JobRun]) -> dict[str, dict[str, dict[int, Record]]]:
    """By the job's name, the lineage ("" or the index), and number. DemoError if the store can't be read."""
    known = {run.name for run in jobs}
    found: dict[str, dict[str, dict[int, Record]]] = {name: defaultdict(dict) for name in known}
    for key in bucket.listing():
        job, tree, number = place(key)
        if job in known and number is not None:
            found[job][tree][number] = lineage.decode(bucket.read(key), number)
    return found


def place(key: str) -> tuple[str, str, int | None]:
    """Job, lineage and number of a record's key below the bucket; no number for other objects."""
    head, found, tail = key.rpartition(layout.LINEAGE)
    job, _, tree = head.strip("/").partition("/")
    return job, tree, layout.parse_record_key(found + tail) if found else None
