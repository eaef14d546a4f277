"""`spot.pools`: where workers on spot may run, and how much each place is worth to the user.

An entry names a zone, an instance type or both; what it leaves out may be anything.
"""

import collections.abc as cabc
import dataclasses
import hashlib
from typing import Any

MOST = 32
"""Entries; and alternatives in a pod: places that can't be written as one, times the template's node terms.

A pod's node affinity has each of them once for every label that marks spot (8, and those of the operator's
settings): 256 terms, some 80 KB.
"""
HEAVIEST = 100


@dataclasses.dataclass(frozen=True)
class Entry:
    """Pools of that zone and that instance type; empty: of any."""

    zone: str = ""
    instance_type: str = ""
    weight: int = 1

    @property
    def place(self) -> tuple[str, str]:
        """Zone and instance type."""
        return self.zone, self.instance_type

    def covers(self, zone: str, instance_type: str) -> bool:
        """It allows that pool, or all that an entry with these names allows."""
        return self.zone in {"", zone} and self.instance_type in {"", instance_type}


Entries = tuple[Entry, ...]


def parse(raw: object) -> Entries:
    """The entries as written.

    Raises:
        ValueError: says which entry can't be acted on, and what to write.

    """
    if not isinstance(raw, list | tuple) or not all(isinstance(one, cabc.Mapping) for one in raw):
        raise ValueError("write a list of entries such as {zone: us-east-1a, instanceType: p4d.24xlarge}")
    if len(raw) > MOST:
        raise ValueError(
            f"{len(raw)} entries are more than {MOST}: name zones alone, or instance types alone"
        )
    found = tuple(_entry(one) for one in raw)
    places = [one.place for one in found]
    twice = next((one for one in places if places.count(one) > 1), None)
    if twice is not None:
        raise ValueError(f"{' '.join(filter(None, twice))} is named twice: keep one of the two entries")
    return found


def _entry(raw: cabc.Mapping[str, Any]) -> Entry:
    zone, kind, heavy = raw.get("zone", ""), raw.get("instanceType", ""), raw.get("weight", 1)
    if not (zone or kind) or not (isinstance(zone, str) and isinstance(kind, str)):
        raise ValueError("an entry needs a zone, an instanceType or both, each as a text")
    if type(heavy) is not int or not 1 <= heavy <= HEAVIEST:
        raise ValueError(f"a weight is a whole number from 1 to {HEAVIEST}")
    return Entry(zone, kind, heavy)


def weight(entries: Entries, zone: str, instance_type: str) -> int:
    """Of a pool: the greatest of the entries that cover it, 0 where none does; 1 where there is no list."""
    if not entries:
        return 1
    return max((one.weight for one in entries if one.covers(zone, instance_type)), default=0)


def unseen(entries: Entries, pools: cabc.Iterable[tuple[str, str]]) -> Entries:
    """Those that cover none of these pools, given by zone and instance type."""
    known = set(pools)
    return tuple(one for one in entries if not any(one.covers(*pool) for pool in known))


def rectangles(entries: Entries) -> list[tuple[list[str], list[str]]]:
    """The same places as few alternatives: each of these zones with each of these types; empty: with any."""
    kinds: dict[str, set[str]] = {}
    for one in entries:
        if not any(other.covers(*one.place) for other in entries if other.place != one.place):
            kinds.setdefault(one.zone, set()).add(one.instance_type)
    zones: dict[tuple[str, ...], list[str]] = {}
    for zone, types in kinds.items():
        zones.setdefault(tuple(sorted(types)), []).append(zone)
    return [
        (sorted(filter(None, some)), [one for one in types if one]) for types, some in sorted(zones.items())
    ]


def digest(entries: Entries) -> str:
    """Of the places, whatever their order and weights; empty where none is given."""
    text = "\n".join(sorted("/".join(one.place) for one in entries))
    return hashlib.sha256(text.encode()).hexdigest()[:10] if entries else ""
