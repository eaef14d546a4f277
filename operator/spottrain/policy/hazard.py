"""How likely a pool is to take its machines back, how soon it gives some again, and both learnt from lives.

A machine's chance to be taken falls with the time that its pool has held out; capacity that went away comes
back soon or stays away for hours. Three public sets of spot traces agree on both (Wu et al., "Can't Be Late",
NSDI'24; the H100 zones of SkyNomad's artifact): the priors below are their rates per hour by age.

A `Record` is what is known of one pool. It learns only from workers that run there: an hour in which they
hold machines counts as one, however many they are, and a loss counts as the share of them that it took. So a
zone that falls as a whole is one event and not one per worker, and one node of twenty is a twentieth. What is
old counts less: half after `HALF_LIFE`.

Times are hours since any fixed moment, the same for all calls; rates are per hour.
"""

import dataclasses
import enum
import math
import random
from collections.abc import Iterator, Sequence

ENDS = (0.5, 1.0, 2.0, 4.0, 8.0, math.inf)
"""Ages are told apart in bands that end here, in hours."""
EXITS = (1.5, 0.7, 0.4, 0.21, 0.14, 0.07)
RETURNS = (2.1, 0.8, 0.6, 0.25, 0.15, 0.06)

HALF_LIFE = 14 * 24.0
LEVEL_PRIOR = 1.0
"""How many events the prior's level weighs: a pool is an average one until it has shown otherwise."""
BAND_PRIOR = 1.0
"""How many events of each band the prior's shape weighs, once scaled to the pool's level."""
DRAWN_PRIOR = 2.0
"""How many it weighs in a drawn level: with fewer, outages without an end would be likely."""
WIPED_OUT = 0.5
"""A loss of this share of a pool's workers is taken for its end: the pool has no capacity."""
LONGEST_GAP = 0.25
"""Hours between two looks in which a pool is taken to have been held all the time."""
SHORTEST_REST, LONGEST_REST = 1 / 6, 4.0
"""Hours that a pool is left alone for after such an end, at least and at most, whatever is learnt."""

Rates = tuple[float, ...]
_NONE = (0.0,) * len(ENDS)


def spans(start: float, end: float) -> Iterator[tuple[int, float]]:
    """The bands between two ages, each with the hours spent in it."""
    begin = 0.0
    for band, limit in enumerate(ENDS):
        inside = min(end, limit) - max(start, begin)
        if inside > 0:
            yield band, inside
        begin = limit


def expected(rates: Sequence[float], start: float, end: float) -> float:
    """Events to expect between two ages."""
    return sum(rates[band] * hours for band, hours in spans(start, end))


def age_at(rates: Sequence[float], start: float, events: float) -> float:
    """The age by which so many events are to be expected from `start` on; infinite where that never is."""
    begin = 0.0
    for rate, limit in zip(rates, ENDS, strict=True):
        low = max(start, begin)
        if low < limit:
            if rate > 0 and low + events / rate <= limit:
                return low + events / rate
            events -= rate * (limit - low) if rate else 0.0
        begin = limit
    return math.inf


def scaled(rates: Sequence[float], factor: float) -> Rates:
    """All rates times a factor."""
    return tuple(factor * rate for rate in rates)


@dataclasses.dataclass(frozen=True)
class Curve:
    """Events, and the hours in which they could have happened, by band of age."""

    events: Rates = _NONE
    hours: Rates = _NONE

    def after(self, start: float, end: float, events: float) -> "Curve":
        """With the hours between two ages, and the events at the second one."""
        hours, happened, last = list(self.hours), list(self.events), 0
        for band, inside in spans(start, end):
            hours[band] += inside
            last = band
        happened[last] += events
        return Curve(tuple(happened), tuple(hours))

    def faded(self, share: float) -> "Curve":
        """With only this share of everything."""
        return Curve(scaled(self.events, share), scaled(self.hours, share))

    def level(self, prior: Rates) -> float:
        """How the pool compares with the prior's: events over those to be expected at the same ages."""
        return (sum(self.events) + LEVEL_PRIOR) / (self._due(prior) + LEVEL_PRIOR)

    def drawn_level(self, prior: Rates, draw: random.Random) -> float:
        """The same as it may be, given how little is known: from a Gamma distribution."""
        return draw.gammavariate(sum(self.events) + DRAWN_PRIOR, 1 / (self._due(prior) + DRAWN_PRIOR))

    def _due(self, prior: Rates) -> float:
        return sum(rate * hours for rate, hours in zip(prior, self.hours, strict=True))

    def rates(self, prior: Rates, level: float | None = None) -> Rates:
        """Events per hour in each band: the prior's shape at this level, and what was seen of each band."""
        level = self.level(prior) if level is None else level
        bands = zip(self.events, self.hours, prior, strict=True)
        return tuple(
            (events + BAND_PRIOR) / (hours + BAND_PRIOR / (level * rate)) for events, hours, rate in bands
        )

    def drawn(self, prior: Rates, draw: random.Random) -> Rates:
        """Rates as they may be."""
        return self.rates(prior, self.drawn_level(prior, draw))


class State(enum.StrEnum):
    """What was last seen of a pool."""

    HELD = "held"
    """Workers run there."""
    LEFT = "left"
    """Workers ran there and went by themselves."""
    AWAY = "away"
    """It has taken its machines back."""


@dataclasses.dataclass(frozen=True)
class Record:
    """What is known of one pool. `since`: HELD or LEFT from when on it held out, AWAY from when on it is.

    `moments` and `machines`: how many losses there were, and of how many machines.
    """

    exits: Curve = Curve()
    returns: Curve = Curve()
    state: State = State.LEFT
    since: float = 0.0
    seen: float = 0.0
    moments: float = 0.0
    machines: float = 0.0

    def after(self, now: float, *, held: bool, lost: int = 0, of: int = 0, tried: bool = False) -> "Record":
        """As known `now`: whether workers hold machines there, and how many `of` how many were taken.

        What a pool that is AWAY left to some doesn't count as held: only what it gave since does. `tried`:
        somebody waited there for a machine all the time, and got none.
        """
        if (
            self.state is not State.HELD
            and not held
            and not lost
            and not (tried and self.state is State.AWAY)
        ):
            return self
        share = lost / of if of else 0.0
        fresh, ages = self._faded(now), (self.seen - self.since, now - self.since)
        state, since = self._standing(now, held=held, share=share)
        return Record(
            exits=fresh.exits.after(*ages if self.state is State.HELD else (0.0, 0.0), share),
            returns=fresh.returns.after(*ages, float(held)) if self.state is State.AWAY else fresh.returns,
            state=state,
            since=since,
            seen=now,
            moments=fresh.moments + (1 if lost else 0),
            machines=fresh.machines + lost,
        )

    def resumed(self, now: float) -> "Record":
        """As one takes it up who has not looked since: after a longer gap nobody knows if it was held."""
        gap = self.state is State.HELD and now - self.seen > LONGEST_GAP
        return dataclasses.replace(self, state=State.LEFT) if gap else self

    def _standing(self, now: float, *, held: bool, share: float) -> tuple[State, float]:
        """The state, and since when."""
        if share >= WIPED_OUT:
            return State.AWAY, now
        if self.state is not State.HELD:
            return State.HELD if held else self.state, now if held else self.since
        # A part of it was taken: what is left is as much younger.
        return State.HELD if held else State.LEFT, now - (1 - share) * (now - self.since)

    def _faded(self, now: float) -> "Record":
        share = 0.5 ** (max(0.0, now - self.seen) / HALF_LIFE)
        return dataclasses.replace(
            self,
            exits=self.exits.faded(share),
            returns=self.returns.faded(share),
            moments=self.moments * share,
            machines=self.machines * share,
        )

    @property
    def hazard(self) -> float:
        """Losses per hour at whatever age: (exits + 1) / (hours + 4)."""
        return (sum(self.exits.events) + 1) / (sum(self.exits.hours) + 4)

    def age(self, now: float) -> float:
        """For how many hours it has held out, as far as is known."""
        if self.state is State.AWAY:
            return 0.0
        return max(0.0, (now if self.state is State.HELD else self.seen) - self.since)

    def losses(self, now: float, hours: float, draw: random.Random) -> float:
        """How many losses may be ahead of a worker who starts there now, given how little is known.

        Of a pool that is held its age is known, and counts; of others nobody knows whether they fell since.
        """
        if self.state is not State.HELD:
            return hours * draw.gammavariate(sum(self.exits.events) + 1, 1 / (sum(self.exits.hours) + 4))
        age = self.age(now)
        return expected(self.exits.drawn(EXITS, draw), age, age + hours)

    @property
    def rest(self) -> float:
        """Hours after which it is as likely as not that a pool which went away has capacity again."""
        median = age_at(self.returns.rates(RETURNS), 0.0, math.log(2))
        return min(max(median, SHORTEST_REST), LONGEST_REST)

    def resting(self, now: float) -> bool:
        """It went away, and is left alone."""
        return self.state is State.AWAY and now - self.since < self.rest

    def together(self, workers: int) -> float:
        """By what a worker's hazard is multiplied for a gang of so many, which any loss interrupts.

        1 where a loss takes all machines, `workers` where it takes one. In between as many times as there
        are losses for each one that takes all, or groups of the usual size in the gang.
        """
        if not self.moments:
            return float(workers)
        share = max(sum(self.exits.events) / self.moments, 1 / workers)
        size = max(self.machines / self.moments, 1.0)
        return min(float(workers), max(1 / share, workers / size))
