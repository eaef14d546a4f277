"""Which faults happen when, from a seed. Pure: the same seed, length and nodes give the same schedule."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from chaos.faults import ALONE, HOLDS, NODE_KINDS, WEIGHTS, Fault

FIRST: Final = 10.0
"""Seconds until the first fault."""
GAP: Final = (5.0, 20.0)
"""Seconds from one fault's beginning to the next."""
NODES_AWAY: Final = 2
"""At most so many nodes are away at a time."""
RECOVERY: Final = 12.0
"""Seconds that a node has after its return before it is taken again, and counts as away."""
QUIET: Final = 3.0
"""Seconds around an outage of the API server or the store in which nothing else begins or ends."""
_TRIES: Final = 20


@dataclass(frozen=True)
class Act:
    """The beginning or the end of a fault, so many seconds after the start."""

    at: float
    fault: Fault
    begins: bool


def schedule(seed: int, seconds: float, nodes: Sequence[str]) -> tuple[Fault, ...]:
    """Faults that begin within so many seconds, in order, and keep to the bounds above."""
    rng = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
    placed: list[Fault] = []
    at = FIRST
    while at < seconds:
        tries = (_draw(rng, len(placed) + 1, at, nodes) for _ in range(_TRIES))
        fitting = next((one for one in tries if _fits(one, placed)), None)
        if fitting is not None:
            placed.append(fitting)
        at += rng.uniform(*GAP)
    return tuple(placed)


def acts(faults: Sequence[Fault]) -> tuple[Act, ...]:
    """Beginnings and ends in the order in which they are carried out."""
    begins = [Act(one.at, one, begins=True) for one in faults]
    ends = [Act(one.end, one, begins=False) for one in faults if one.hold]
    return tuple(sorted([*begins, *ends], key=lambda act: (act.at, act.fault.number, not act.begins)))


def _draw(rng: random.Random, number: int, at: float, nodes: Sequence[str]) -> Fault:
    kind = rng.choices(list(WEIGHTS), weights=list(WEIGHTS.values()))[0]
    ranges = HOLDS.get(kind)
    hold = round(rng.uniform(*rng.choice(ranges)), 1) if ranges else 0.0
    node = rng.choice(list(nodes)) if kind in NODE_KINDS else ""
    pick = 0.0 if node else round(rng.random(), 3)
    return Fault(number, math.floor(at * 10) / 10, kind, hold, node, pick)


def _fits(one: Fault, placed: Sequence[Fault]) -> bool:
    return all(_apart(one, other) for other in placed) and _enough_nodes(one, placed)


def _apart(one: Fault, other: Fault) -> bool:
    """An outage of what all depend on stands by itself: the other begins and ends outside of it."""
    for outage, moments in ((one, (other.at, other.end)), (other, (one.at, one.end))):
        if outage.kind in ALONE and any(
            outage.at - QUIET <= moment <= outage.end + QUIET for moment in moments
        ):
            return False
    return True


def _enough_nodes(one: Fault, placed: Sequence[Fault]) -> bool:
    if one.kind not in NODE_KINDS:
        return True
    meanwhile = [
        other
        for other in placed
        if other.kind in NODE_KINDS and other.at <= one.end + RECOVERY and one.at <= other.end + RECOVERY
    ]
    # Counted as if all of these were away at once, which is on the safe side.
    return one.node not in {other.node for other in meanwhile} and len(meanwhile) < NODES_AWAY
