"""How long spot capacity stays once it is there, and stays away once it is gone.

Neither chance is constant. Replayed public traces (AWS 2022 and 2023, GCP H100 2025) all show the same: of
what came half an hour ago at most, 1.3-1.7 an hour are taken away again, of what is there for 4 to 8 hours
0.09-0.19; what went away half an hour ago at most returns at 1.4-2.9 an hour, after 2 to 4 hours at 0.1-0.3.
So a chance is learnt for each of three ages: (ends + 12·prior) / (exposure + 12), in ticks of ten minutes.
The prior weighs as much as two hours of watching.
"""

import bisect
import collections.abc as cabc
import dataclasses
import itertools

TICK = 600.0
"""Seconds between two looks at a pool, and between two decisions."""

AGES = (3, 12)
"""The oldest tick of all ages but the last: half an hour, two hours."""

PRIOR_WEIGHT = 12.0
LOSS_PRIOR = (0.21, 0.09, 0.02)
RETURN_PRIOR = (0.28, 0.09, 0.03)
"""Chance per tick by age, before anything is known: about what all those traces have in common."""


@dataclasses.dataclass(frozen=True)
class Spell:
    """`ticks` in which a pool was seen to have capacity, or none; `ended`: in the next it was not so."""

    ticks: int
    ended: bool = True


@dataclasses.dataclass(frozen=True)
class Chances:
    """That within a tick capacity is lost, and returns; by age."""

    loss: tuple[float, ...] = LOSS_PRIOR
    back: tuple[float, ...] = RETURN_PRIOR


def age_class(ticks: int) -> int:
    """Which of the ages a spell is in that has lasted `ticks`, the current one included."""
    return bisect.bisect_left(AGES, ticks)


def learn(there: cabc.Iterable[Spell], away: cabc.Iterable[Spell]) -> Chances:
    """From the spells with and without capacity that were seen so far, the current one included."""
    return Chances(_learn(there, LOSS_PRIOR), _learn(away, RETURN_PRIOR))


def _learn(spells: cabc.Iterable[Spell], prior: tuple[float, ...]) -> tuple[float, ...]:
    ends = [0.0] * len(prior)
    exposure = [0.0] * len(prior)
    for spell in spells:
        watched = spell.ticks if spell.ended else spell.ticks - 1
        for age, (first, last) in enumerate(zip((0, *AGES), (*AGES, watched), strict=True)):
            exposure[age] += max(0, min(watched, last) - first)
        if spell.ended:
            ends[age_class(spell.ticks)] += 1
    return tuple(
        (end + PRIOR_WEIGHT * chance) / (seen + PRIOR_WEIGHT)
        for end, seen, chance in zip(ends, exposure, prior, strict=True)
    )


def of(seen: cabc.Iterable[bool]) -> tuple[list[Spell], list[Spell]]:
    """What was seen tick by tick as spells with and without capacity; the last one has not ended."""
    runs = [(there, sum(1 for _ in ticks)) for there, ticks in itertools.groupby(seen)]
    spells = [(there, Spell(ticks, ended=index < len(runs) - 1)) for index, (there, ticks) in enumerate(runs)]
    return [one for there, one in spells if there], [one for there, one in spells if not there]
