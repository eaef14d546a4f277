"""Public traces of spot capacity, zone by zone.

A file holds `metadata` (`gap_seconds` between probes, `zone`, prices) and `data`, one number a probe: **1 is
unavailable**. Other collections of the same data write it the other way round.
"""

import datetime as dt
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Zone:
    """One pool: whether it had capacity at each probe, `tick` hours apart; prices per machine and hour."""

    name: str
    start: dt.datetime
    tick: float
    up: tuple[bool, ...]
    spot: float
    on_demand: float


def load(folder: Path) -> list[Zone]:
    """Every zone in `folder`/h100, or in the folder itself, cut to the time that all of them were probed.

    Raises:
        FileNotFoundError: there is none; the message says what should be there.

    """
    place = folder / "h100" if (folder / "h100").is_dir() else folder
    zones = [_zone(path) for path in sorted(place.glob("*.json"))]
    if not zones:
        raise FileNotFoundError(f"no *.json of zones in {place}: give a folder of traces with --traces")
    return _together(zones)


def _zone(path: Path) -> Zone:
    trace = json.loads(path.read_text())
    metadata = trace["metadata"]
    prices = metadata.get("price_info") or {}
    return Zone(
        name=metadata.get("zone") or path.stem,
        start=dt.datetime.fromisoformat(metadata["start_time"]),
        tick=metadata["gap_seconds"] / 3600,
        up=tuple(not one for one in trace["data"]),
        spot=prices.get("price") or 1.0,
        on_demand=prices.get("on_demand_price") or 3.14,
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
