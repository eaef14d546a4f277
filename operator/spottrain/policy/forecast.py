"""What a job will take, by playing it many times: wall time, reclaims, hours of each capacity.

Each time is one possible future: the rates of the pools are drawn from what they may be, given how little is
known of them; capacity returns faster or slower than it did, in all pools of a region alike; then each pool
gives and takes its capacity by chance. The job runs in the pool with the best outlook, by what is known
before, of those that have capacity, saves at its interval, loses what it did since the last save unless the
reclaim was announced early enough, and starts again. Everything is in hours.
"""

import dataclasses
import math
import random
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Protocol

from spottrain.policy import hazard, pools

RUNS = 500
LOW, HIGH = 0.1, 0.9
"""Between these quantiles lie 80 % of the futures."""
LONGEST_LOOK_BACK = 72.0
"""Hours: what was last seen of a pool longer ago than that says no more of what it is now."""
NEVER = 10.0
"""A job that takes so many times its work is given up on: it never gets done."""
RETURNS_VARY, EXITS_VARY = 0.2, 0.2
"""By how much capacity of the next days returns and goes faster or slower than learnt: variance around 1.

Measured as that of a mixed Poisson's rate, by moments: with n changes in a window of one to four days where
e were to be expected, the sum of (n-e)²-e over that of e². Returns: 0.16 to 0.27 on AWS 2022, 0.08 to 0.17 in
the H100 zones; between two pools of a region, by (n-e)(n'-e') over ee', 0.15 to 0.28 and 0.03 to 0.13, and
between regions less: it is the region's. Exits: about 0.1 and 0.3 to 1.5, and nothing between pools.
"""


@dataclasses.dataclass(frozen=True)
class Job:
    """What there is to do, of the whole job: useful hours, and what stands in their way.

    `interval` of work between saves of `save`; `restart` until work goes on after a loss or a move;
    `notice_share` of the reclaims are announced early enough for a save.
    """

    work: float
    interval: float
    save: float
    restart: float
    notice_share: float

    def until_done(self, left: float) -> float:
        """How long so much work takes, with its saves."""
        return left + self.save * math.ceil(left / self.interval - 1e-9)

    def done_within(self, life: float) -> tuple[float, float]:
        """Work that is saved in so much time, and work that is done."""
        periods, rest = divmod(life, self.interval + self.save)
        saved = periods * self.interval
        return saved, saved + min(rest, self.interval)


@dataclasses.dataclass(frozen=True)
class Fallback:
    """On-demand after so long without spot, for so long at least."""

    after: float = 0.25
    lasts: float = 2.0


class Place(Protocol):
    """Where the job may run: a pool, or spot of which only a rate of reclaims is known."""

    def future(self, draw: random.Random, regions: MutableMapping[str, float]) -> "Weather":
        """One possible future, from now on.

        `regions` has the share of its learnt pace at which capacity returns there; the first of a region's
        pools draws it.
        """


@dataclasses.dataclass(frozen=True)
class Steady:
    """Spot that interrupts the job at one rate per hour, and always has another machine."""

    rate: float

    def future(self, draw: random.Random, regions: MutableMapping[str, float]) -> "Weather":  # noqa: ARG002
        """Losses at that rate, with capacity at once after each."""
        bands = len(hazard.ENDS)
        exits, returns = (self.rate,) * bands, (math.inf,) * bands
        return Weather(_changes(exits, returns, draw), exits, up=True)


@dataclasses.dataclass(frozen=True)
class Learnt:
    """A pool as it is known `now`, for a job of so many workers."""

    record: hazard.Record
    now: float
    workers: int = 1
    region: str = ""

    def future(self, draw: random.Random, regions: MutableMapping[str, float]) -> "Weather":
        """With rates as they may be, and from what was last seen of it."""
        together = self.record.together(self.workers)
        exits = self.record.exits.drawn(hazard.EXITS, draw)
        exits = hazard.scaled(exits, together * _factor(EXITS_VARY, draw))
        fortune = regions.setdefault(self.region, _factor(RETURNS_VARY, draw))
        returns = hazard.scaled(self.record.returns.drawn(hazard.RETURNS, draw), fortune)
        known = hazard.scaled(self.record.exits.rates(hazard.EXITS), together)
        up = self.record.state is not hazard.State.AWAY
        age = self.record.seen - self.record.since
        begin = -min(max(0.0, self.now - self.record.seen), LONGEST_LOOK_BACK)
        changes = _changes(exits, returns, draw, up=up, age=age, begin=begin)
        weather = Weather(changes, known, up=up, since=begin - age)
        weather.pass_to(0.0)
        return weather


def _factor(variance: float, draw: random.Random) -> float:
    """From the Gamma distribution of mean 1 with that variance."""
    return draw.gammavariate(1 / variance, variance)


def _changes(  # noqa: PLR0913 - a start has these parts
    exits: hazard.Rates,
    returns: hazard.Rates,
    draw: random.Random,
    *,
    up: bool = True,
    age: float = 0.0,
    begin: float = 0.0,
) -> Iterator[float]:
    """Moments at which capacity goes and comes by chance, for ever."""
    moment = begin
    while True:
        rates = exits if up else returns
        moment += hazard.age_at(rates, age, draw.expovariate(1.0)) - age
        yield moment
        up, age = not up, 0.0


class Weather:
    """A pool's capacity as it comes and goes in one future, changing at these moments.

    `exits` is what the job goes by when it chooses among pools.
    """

    def __init__(
        self, changes: Iterator[float], exits: hazard.Rates, *, up: bool, since: float = 0.0
    ) -> None:
        self._changes, self._exits = changes, exits
        self.up = up
        self._since = since
        self.until = next(changes)
        """When it changes next."""

    def pass_to(self, moment: float) -> None:
        """Let it change until then."""
        while self.until <= moment:
            self.up = not self.up
            self._since, self.until = self.until, next(self._changes)

    def outlook(self, moment: float) -> float:
        """Losses to be expected in the next hours of a job that begins there now."""
        age = moment - self._since
        return hazard.expected(self._exits, age, age + pools.HORIZON)


@dataclasses.dataclass(frozen=True)
class Run:
    """What one future took: hours from submission to the end, and in them with machines of each capacity."""

    wall: float
    spot: float
    on_demand: float
    reclaims: int
    done: bool = True


class _Course:
    """One job in one future."""

    def __init__(self, job: Job, weathers: Sequence[Weather], draw: random.Random, limit: float) -> None:
        self._job, self._weathers, self._draw, self._limit = job, weathers, draw, limit
        self._now = self._spot = self._on_demand = 0.0
        self._left = job.work
        self._reclaims = 0

    def run(self, fallback: Fallback | None) -> Run:
        while self._left > 0 and self._now < self._limit:
            for weather in self._weathers:
                weather.pass_to(self._now)
            there = [one for one in self._weathers if one.up]
            if there:
                self._live_in(min(there, key=lambda one: one.outlook(self._now)))
            else:
                self._wait(min(self._limit, *(one.until for one in self._weathers)), fallback)
        return Run(self._now, self._spot, self._on_demand, self._reclaims, done=self._left <= 0)

    def _live_in(self, weather: Weather) -> None:
        life = weather.until - self._now
        needed = self._job.restart + self._job.until_done(self._left)
        if min(life, self._limit - self._now) >= needed:
            self._spend(needed)
            self._left = 0.0
            return
        if weather.until >= self._limit:
            self._spend(self._limit - self._now)
            return
        saved, done = self._job.done_within(max(0.0, life - self._job.restart))
        announced = self._draw.random() < self._job.notice_share
        self._left -= done if announced else saved
        self._spend(life + (self._job.save if announced else 0.0))
        self._reclaims += 1

    def _spend(self, hours: float) -> None:
        self._now += hours
        self._spot += hours

    def _wait(self, until: float, fallback: Fallback | None) -> None:
        if fallback is None or until - self._now <= fallback.after:
            self._now = until
            return
        begin = self._now + fallback.after
        needed = self._job.restart + self._job.until_done(self._left)
        least = fallback.lasts * math.ceil(max(until - begin, 1e-9) / fallback.lasts)
        lasts = min(needed, least, self._limit - begin)
        self._on_demand += lasts
        self._now = begin + lasts
        _, done = self._job.done_within(max(0.0, lasts - self._job.restart))
        self._left = 0.0 if lasts == needed else self._left - done


@dataclasses.dataclass(frozen=True)
class Spread:
    """A figure over all futures: its mean, and between which values 80 % of them are."""

    mean: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """Of at least one value."""
    ordered = sorted(values)
    last = len(ordered) - 1
    return Spread(sum(ordered) / len(ordered), ordered[round(LOW * last)], ordered[round(HIGH * last)])


@dataclasses.dataclass(frozen=True)
class Forecast:
    """All futures."""

    runs: tuple[Run, ...]

    def of(self, figure: Callable[[Run], float]) -> Spread:
        """The spread of a figure."""
        return spread([figure(one) for one in self.runs])

    @property
    def done(self) -> float:
        """The share of futures in which the job gets done."""
        return sum(one.done for one in self.runs) / len(self.runs)


def forecast(  # noqa: PLR0913 - what there is to play, and how
    job: Job,
    places: Sequence[Place],
    *,
    fallback: Fallback | None = None,
    seed: int = 1,
    runs: int = RUNS,
    limit: float = math.inf,
) -> Forecast:
    """Play the job so many times. The same arguments give the same futures.

    What isn't done after `limit` hours, or `NEVER` times its work, is given up on then.
    """
    played = []
    limit = min(limit, NEVER * job.work)
    for number in range(runs):
        draw = random.Random(f"{seed}/{number}")  # noqa: S311 - chance, not secrecy
        regions: dict[str, float] = {}
        weathers = [place.future(draw, regions) for place in places]
        played.append(_Course(job, weathers, draw, limit).run(fallback))
    return Forecast(tuple(played))
