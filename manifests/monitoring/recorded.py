"""Recording rules: what several panels and alerts ask for, or what looks far back."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Recorded:
    """One series that Prometheus computes; named `level:metric:operation`, as is the custom."""

    name: str
    text: str
    expression: str
    labels: tuple[str, ...] = ()


def counted(series: str, window: str, by: str = "", *, announced: bool = False) -> str:
    """How many events the window had.

    `increase()` misses what a series comes into being with, and a reclaim's series does with the first of
    its kind: what was not there before the window counts from 0, as its process did, even if that has ended.

    `announced`: the series is shown from the first pass on, and `increase()` misses only what that pass has
    counted. It is new if an operator was read in the hour before the window and it wasn't: after scrapes that
    were missed, or in a Prometheus that has just begun, nothing long past is counted.
    """
    new = f"last_over_time({series}[{window}]) unless {series} offset {window}"
    if announced:
        before = f"[1h] offset {window})"
        new = (
            f"last_over_time({series}[{window}]) unless last_over_time({series}{before}"
            f" and on () group(last_over_time(spottrain_queue_length{before})"
        )
    return f"sum by ({by}) (({new}) or increase({series}[{window}]))"


REAL_RECLAIMS = 'spottrain_reclaims_total{capacity="spot", cause!="Drill"}'

RECLAIMS = Recorded(
    "fleet:spottrain_reclaims:increase1h",
    "Spot workers reclaimed in the last hour, drills left out",
    f"{counted(REAL_RECLAIMS, '1h')} or vector(0)",
)
SPOT_WORKERS = Recorded(
    "fleet:spottrain_spot_workers:sum",
    "Workers that run on spot nodes",
    'sum(spottrain_job_workers_running{capacity="spot"}) or vector(0)',
)
RECLAIM_RATE = Recorded(
    "fleet:spottrain_reclaims_per_spot_worker:rate1h",
    "Reclaims per hour and spot worker, over the last hour",
    f"{RECLAIMS.name} / (avg_over_time({SPOT_WORKERS.name}[1h]) > 0)",
)
USUAL_RATE = Recorded(
    "fleet:spottrain_reclaims_per_spot_worker:rate7d",
    "The same over the week before that hour",
    f"avg_over_time({RECLAIMS.name}[7d] offset 1h) / (avg_over_time({SPOT_WORKERS.name}[7d] offset 1h) > 0)",
)
RECORDED = (RECLAIMS, SPOT_WORKERS, RECLAIM_RATE, USUAL_RATE)
