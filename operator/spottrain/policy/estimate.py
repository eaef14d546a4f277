"""What a job will take on spot, mixed and on-demand, before anything runs: interval, overhead, time, money.

Hours everywhere; prices are per worker-hour.
"""

import dataclasses
from collections.abc import Mapping

from spottrain.api.prices import Prices
from spottrain.policy import forecast, hazard, interval, money, pools

PILOT_RUNS = 100
TOO_MUCH = 0.2
"""Overhead (a share of the time) past which the design is wrong, not its settings."""


@dataclasses.dataclass(frozen=True)
class Question:
    """A job, and what is known or supposed.

    `work`: useful hours of the whole job with all its workers and no interruption. `usable`: of the notice
    window, after its margin. `rate`: reclaims per hour of one worker; None where `pools` says it,
    as known `now`. `fixed_interval` is the spec's, None for auto.
    """

    work: float
    workers: int
    save: float
    restart: float
    usable: float
    gang: bool = True
    floor: int = 0
    notice_share: float | None = None
    fixed_interval: float | None = None
    rate: float | None = None
    pools: Mapping[str, hazard.Record] = dataclasses.field(default_factory=dict)
    now: float = 0.0
    prices: Prices | None = None
    seed: int = 1

    @property
    def save_fits(self) -> bool:
        """A save that begins with the notice is done in time."""
        return self.save <= self.usable

    @property
    def share(self) -> float:
        """Of reclaims that are saved for: none where a save doesn't fit, whatever else is supposed."""
        if not self.save_fits:
            return 0.0
        return interval.PRIOR_NOTICE_SHARE if self.notice_share is None else self.notice_share

    def places(self, spot_workers: int) -> list[forecast.Place]:
        """Where so many of its workers may run on spot; an index of an Independent job runs by itself."""
        together = spot_workers if self.gang else min(spot_workers, 1)
        if self.rate is not None or not spot_workers:
            return [forecast.Steady((self.rate or 0.0) * together)]
        return [
            forecast.Learnt(one, self.now, together, pools.region(name)) for name, one in self.pools.items()
        ]

    def job(self, every: float) -> forecast.Job:
        """With a save after each so many hours of work."""
        return forecast.Job(self.work, every, self.save, self.restart, self.share)


@dataclasses.dataclass(frozen=True)
class Way:
    """One way to buy the machines: time and, with prices, money. `done`: in what share of futures it ends.

    In the others it counts until it is given up on: the means are less than what it would take.
    """

    wall: forecast.Spread
    reclaims: forecast.Spread
    cost: forecast.Spread | None
    done: float = 1.0

    @property
    def at_least(self) -> bool:
        """The means leave out what futures that aren't done would still take."""
        return self.done < 1


@dataclasses.dataclass(frozen=True)
class Answer:
    """All that there is to say. `mean_time`: between interruptions of the job, on spot alone.

    `break_even`: reclaims of the job past which spot costs more than on-demand; None without prices.
    """

    question: Question
    interval: float
    mean_time: float
    goodput: float
    lost: float
    spot: Way
    mixed: Way
    on_demand: Way
    break_even: float | None

    @property
    def break_even_rate(self) -> float | None:
        """The same as reclaims per worker and hour."""
        if self.break_even is None:
            return None
        together = self.question.workers if self.question.gang else 1
        return self.break_even / self.question.work / together


def estimate(question: Question) -> Answer:
    """Play the job through; the same question has the same answer."""
    mean_time = _mean_time(question)
    every = question.fixed_interval or _interval(question, mean_time)
    job, workers = question.job(every), question.workers
    spot = forecast.forecast(job, question.places(workers), seed=question.seed)
    partly = question.places(workers - question.floor)
    mixed = forecast.forecast(job, partly, fallback=forecast.Fallback(), seed=question.seed)
    lives = interval.Lives(question.save, mean_time, question.restart, question.share)
    lost = (1 - question.share) * every / 2 + lives.lost_at_each
    return Answer(
        question=question,
        interval=every,
        mean_time=mean_time,
        goodput=lives.goodput(every),
        lost=lost,
        spot=_way(question, spot, 0),
        mixed=_way(question, mixed, question.floor),
        on_demand=_bought(question),
        break_even=_break_even(question, lost),
    )


def _break_even(question: Question, lost: float) -> float | None:
    if question.prices is None:
        return None
    return money.break_even(discount=question.prices.discount, work=question.work, lost=lost)


def _mean_time(question: Question) -> float:
    """Between interruptions of the job. With pools it depends on where it goes: it is tried."""
    if question.rate is not None:
        rate = question.rate * (question.workers if question.gang else 1)
        return 1 / rate if rate else hazard.ENDS[-1]
    every = _interval(question, interval.PRIOR_MEAN_SECONDS / 3600)
    pilot = forecast.forecast(
        question.job(every), question.places(question.workers), seed=question.seed, runs=PILOT_RUNS
    )
    return sum(one.spot for one in pilot.runs) / (0.5 + sum(one.reclaims for one in pilot.runs))


def _interval(question: Question, mean_time: float) -> float:
    found = interval.optimal(
        cost=3600 * question.save, mean_time=3600 * mean_time, notice_share=question.share
    )
    return found / 3600


def _way(question: Question, played: forecast.Forecast, floor: int) -> Way:
    prices, workers = question.prices, question.workers

    def cost(run: forecast.Run, prices: Prices) -> float:
        always = floor * run.wall
        spot, bought = (workers - floor) * run.spot, (workers - floor) * run.on_demand
        return float(money.cost(spot, prices.spot) + money.cost(always + bought, prices.on_demand))

    return Way(
        wall=played.of(lambda run: run.wall),
        reclaims=played.of(lambda run: run.reclaims),
        cost=None if prices is None else played.of(lambda run: cost(run, prices)),
        done=played.done,
    )


def _bought(question: Question) -> Way:
    """On-demand alone: nothing is taken away, and it is saved as seldom as a job ever saves."""
    job = question.job(question.fixed_interval or interval.LONGEST / 3600)
    wall = question.restart + job.until_done(question.work)
    certain, none = forecast.Spread(wall, wall, wall), forecast.Spread(0, 0, 0)
    if question.prices is None:
        return Way(certain, none, None)
    cost = float(money.cost(question.workers * wall, question.prices.on_demand))
    return Way(certain, none, forecast.Spread(cost, cost, cost))
