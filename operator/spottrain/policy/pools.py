"""What is known of all pools: which to prefer, and all of it as a small text.

A pool is named `capacity/zone/instance-type`, a part that isn't known is empty.
"""

import json
import random
from collections.abc import Mapping
from typing import Any

from spottrain.policy import hazard

HORIZON = 12.0
"""Hours that a choice looks ahead."""
MOST = 64
"""Pools that are kept: those seen last. A text of them has less than 32 KiB."""
VERSION = 1
KEY = "pools.json"
"""Under which a ConfigMap holds the text."""

Records = Mapping[str, hazard.Record]
_ALIKE: Mapping[str, int] = {}


def ranked(
    records: Records, now: float, draw: random.Random, weights: Mapping[str, int] = _ALIKE
) -> list[str]:
    """Their names, the one that a worker had best go to first, and last those that rest.

    A pool of twice the weight may lose machines twice as often and is as good. So of pools of which nothing
    is known each comes first with the share of its weight: their drawn rates are exponential.

    Each is judged by rates as they may be (Thompson sampling, Biometrika 25, 1933). So a pool of which little
    is known is tried now and then, jobs spread over pools that are about as good, and more than one stays
    well known. By the likeliest rates all would follow each other into one pool, and know nothing of the
    others on the day when it falls: over the H100 zones that is worse than chance for long jobs.
    """
    ahead = {name: records[name].losses(now, HORIZON, draw) for name in sorted(records)}
    return sorted(ahead, key=lambda name: (records[name].resting(now), ahead[name] / weights.get(name, 1)))


def resting(records: Records, now: float) -> list[str]:
    """Those that took their machines back a short while ago, the newest first."""
    found = [name for name, one in records.items() if one.resting(now)]
    return sorted(found, key=lambda name: (-records[name].since, name))


def region(name: str) -> str:
    """Of a pool, by its zone: us-west-2 of us-west-2a, us-central1 of us-central1-a, eastus of eastus-1."""
    _, zone, *_ = name.split("/")
    return zone[:-1].removesuffix("-")


def encode(records: Records) -> str:
    """One line of JSON; numbers with three digits, moments to the second."""
    newest = sorted(records, key=lambda name: records[name].seen, reverse=True)[:MOST]
    text = {name: _plain(records[name]) for name in sorted(newest)}
    return json.dumps({"version": VERSION, "pools": text}, separators=(",", ":"))


def decode(text: str) -> dict[str, hazard.Record]:
    """What `encode` wrote.

    Raises:
        ValueError: it is something else, or of a newer version; the message says which.

    """
    try:
        found = json.loads(text)
        if found["version"] != VERSION:
            raise ValueError(f"is of version {found['version']}, and this spottrain reads {VERSION}")
        return {name: _record(one) for name, one in found["pools"].items()}
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"does not hold what is known of pools: {error!r}") from error


def _plain(record: hazard.Record) -> dict[str, Any]:
    return {
        "exits": _curve(record.exits),
        "returns": _curve(record.returns),
        "state": str(record.state),
        "times": [round(record.since, 4), round(record.seen, 4)],
        "losses": _short((record.moments, record.machines)),
    }


def _curve(curve: hazard.Curve) -> list[list[float]]:
    return [_short(curve.events), _short(curve.hours)]


def _short(values: tuple[float, ...]) -> list[float]:
    return [float(f"{value:.3g}") for value in values]


def _record(plain: dict[str, Any]) -> hazard.Record:
    since, seen = (float(one) for one in plain["times"])
    moments, machines = (float(one) for one in plain["losses"])
    return hazard.Record(
        exits=_read(plain["exits"]),
        returns=_read(plain["returns"]),
        state=hazard.State(plain["state"]),
        since=since,
        seen=seen,
        moments=moments,
        machines=machines,
    )


def _read(rows: list[list[float]]) -> hazard.Curve:
    events, hours = (tuple(float(one) for one in row) for row in rows)
    if {len(events), len(hours)} != {len(hazard.ENDS)}:
        raise ValueError(f"has other bands of age than the {len(hazard.ENDS)} of this spottrain")
    return hazard.Curve(events, hours)
