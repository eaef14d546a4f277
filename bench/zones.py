"""Zones, or pools, of public traces of spot capacity that were probed at the same time.

A file of the collection holds `metadata` (`gap_seconds` between probes, `zone`, prices) and `data`, one
number a probe: **1 is unavailable**. Other collections of the same data write it the other way round. In the
traces that are shipped (bench.policy.traces) all zones begin together, and there are no prices.
"""

import datetime as dt
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.policy import traces

H100 = "h100"
_UNKNOWN = dt.datetime.fromtimestamp(0, dt.UTC)
_TICK = 1 / 6
_SPOT, _ON_DEMAND = 1.0, 3.14
"""Where a trace has no prices: the ratio of the published figures."""


@dataclass(frozen=True)
class Zone:
    """One pool: whether it had capacity at each probe, `tick` hours apart; prices per machine and hour."""

    name: str
    start: dt.datetime
    tick: float
    up: tuple[bool, ...]
    spot: float
    on_demand: float

    @property
    def pool(self) -> str:
        """The pool's name, as the operator would name it. Those of AWS 2022 are called us-west-2a_v100_1."""
        zone, _, machine = self.name.partition("_")
        return f"spot/{zone}/{machine}"


def sets(folder: Path, found: Sequence[traces.Trace]) -> dict[str, list[Zone]]:
    """All traces by set, each cut to the time that all of it was probed.

    Those of `load` say when they begin; those of other sets are taken to begin together.

    Raises:
        FileNotFoundError: see `load`.

    """
    groups = {group: list(some) for group, some in itertools.groupby(found, key=lambda one: one.group)}
    known = {group: _together([_as_zone(one) for one in some]) for group, some in groups.items()}
    return known | ({H100: load(folder)} if H100 in known else {})


def load(folder: Path) -> list[Zone]:
    """Every zone in `folder`/h100, or in the folder itself, cut to the time that all of them were probed.

    Raises:
        FileNotFoundError: there is none; the message says what should be there.

    """
    place = folder / H100 if (folder / H100).is_dir() else folder
    shipped = place / f"{H100}.runs"
    if shipped.is_file():
        return _together([_as_zone(one) for one in traces.read(place) if one.group == shipped.stem])
    zones = [_zone(path) for path in sorted(place.glob("*.json"))]
    if not zones:
        raise FileNotFoundError(f"no *.json and no h100.runs in {place}: give a folder of traces of zones")
    return _together(zones)


def _as_zone(trace: traces.Trace) -> Zone:
    return Zone(trace.pool, _UNKNOWN, _TICK, trace.there, _SPOT, _ON_DEMAND)


def _zone(path: Path) -> Zone:
    trace = json.loads(path.read_text())
    metadata = trace["metadata"]
    prices = metadata.get("price_info") or {}
    return Zone(
        name=metadata.get("zone") or path.stem,
        start=dt.datetime.fromisoformat(metadata["start_time"]),
        tick=metadata["gap_seconds"] / 3600,
        up=tuple(not one for one in trace["data"]),
        spot=prices.get("price") or _SPOT,
        on_demand=prices.get("on_demand_price") or _ON_DEMAND,
    )


def _together(zones: Sequence[Zone]) -> list[Zone]:
    begin = max(one.start for one in zones)
    tick = zones[0].tick
    firsts = [round((begin - one.start).total_seconds() / 3600 / tick) for one in zones]
    ticks = min(len(one.up) - first for one, first in zip(zones, firsts, strict=True))
    return [
        Zone(one.name, begin, tick, one.up[first : first + ticks], one.spot, one.on_demand)
        for one, first in zip(zones, firsts, strict=True)
        if one.tick == tick
    ]
