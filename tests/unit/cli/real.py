"""Objects as an API server returned them, and small changes of them."""

import copy
import datetime as dt
import json
from pathlib import Path
from typing import Any

from spottrain.cli import history

Object = dict[str, Any]
FOLDER = Path(__file__).parent / "objects"
NOW = dt.datetime(2026, 11, 29, 21, 10, 49, tzinfo=dt.UTC)
"""Ten minutes after the end of `digits`."""


def digits() -> tuple[Object, list[Object]]:
    """A gang of three from `make demo`, complete in its third attempt: evicted once, one node killed once."""
    found = json.loads((FOLDER / "digits.json").read_text())
    return found["job"], found["pods"]


def job(**status: Any) -> Object:
    """`digits` with fields of its status replaced; None takes one away."""
    changed = copy.deepcopy(digits()[0])
    for key, value in status.items():
        if value is None:
            changed["status"].pop(key, None)
        else:
            changed["status"][key] = value
    return changed


def told(**status: Any) -> history.History:
    """The history of such a job, with all pods that were left."""
    return history.tell(job(**status), digits()[1])


SAID = "1 failure, 0 allowed; the last one: digits-1-2 exited 1 (Error)"
GIVEN_UP = {
    "type": "Failed",
    "status": "True",
    "reason": "TooManyFailures",
    "message": f"{SAID}\nend of the log of digits-1-2:\nTraceback\nKeyError: 'lr'",
    "lastTransitionTime": "2026-11-29T21:00:49Z",
}


def given_up(**changes: Any) -> history.History:
    """Attempt 2 failed once too often: attempt 3 was recorded before that was known, and had no pods."""
    attempts = digits()[0]["status"]["attempts"]
    del attempts[2]["runningTime"]
    attempts[2] |= {"cause": "Failed", "reason": "Error", "detail": "digits-1-2 exited 1 (Error)", "index": 1}
    changed = {"attempts": attempts, "phase": "Failed", "createdAttempt": 2, "conditions": [GIVEN_UP]}
    pods = [pod for pod in digits()[1] if pod["metadata"]["labels"]["spottrain.dev/attempt"] != "3"]
    return history.tell(job(**(changed | changes)), pods)


def plane() -> tuple[Object, list[Object], list[Object], dict[str, Object]]:
    """A gang of four that lost a worker and failed once, and runs: job, pods, Events, nodes by name."""
    found = json.loads((FOLDER / "plane.json").read_text())
    nodes = {node["metadata"]["name"]: node for node in found["nodes"]}
    return found["job"], found["pods"], found["events"], nodes


PLANE_NOW = dt.datetime(2026, 11, 30, 12, 13, 13, tzinfo=dt.UTC)
"""Twenty seconds after the newest Event of `plane`."""
