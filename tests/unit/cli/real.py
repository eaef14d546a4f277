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
