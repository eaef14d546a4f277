"""The operator's metrics and how they follow from a job's status before and after a pass."""

import collections.abc as cabc
import contextlib
import dataclasses
import datetime as dt

import prometheus_client as prometheus

from spottrain.api import conditions, status
from spottrain.metrics import costs

WINDOW_SECONDS = (1, 2, 5, 10, 15, 20, 25, 30, 45, 60, 90, 120, 180, 300, 600)
RESTART_SECONDS = (1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600, 1800)
ENDS = (status.Phase.COMPLETE, status.Phase.FAILED)


@dataclasses.dataclass(frozen=True)
class Change:
    """One pass. `before` is what was in the cluster until then, `after` what is there now.

    `reclaims` are those that it has recorded: of independent indexes there may be many, each of another pool.
    `placed` is when the last of the attempt's workers got its node.
    `slack`: seconds to spare until the job's deadline, None where there is none or it isn't known.
    """

    namespace: str
    name: str
    floor: int
    before: status.Status
    after: status.Status
    reclaims: tuple[status.Reclaim, ...] = ()
    placed: dt.datetime | None = None
    slack: float | None = None


class Metrics:
    """A registry of its own, so that two operators in one process (as in tests) don't share series."""

    def __init__(self, *, teams: bool = False) -> None:
        """`teams`: money is told apart by a label of the jobs too."""
        # A second series per counter that nobody reads.
        prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = prometheus.CollectorRegistry()
        prometheus.ProcessCollector(registry=self.registry)
        job = ("namespace", "job")
        lost = ("namespace", "cause", "capacity", "provider", "zone", "instance_type")
        self._reclaims = self._counter("reclaims", "Workers lost with their node or by eviction", lost)
        self._failures = self._counter("failures", "Attempts ended by an application failure", ("namespace",))
        self._ended = self._counter("jobs_ended", "Jobs that came to their end", ("namespace", "outcome"))
        self._attempts = self._counter("attempts", "Attempts begun", ("namespace", "cause"))
        self._running_after = prometheus.Histogram(
            "spottrain_reclaim_to_running_seconds",
            "From the record of a reclaim until all workers run again",
            ("namespace",),
            buckets=RESTART_SECONDS,
            registry=self.registry,
        )
        self._placed_after = prometheus.Histogram(
            "spottrain_reclaim_to_placed_seconds",
            "From the record of a reclaim until all workers have a node",
            ("namespace",),
            buckets=RESTART_SECONDS,
            registry=self.registry,
        )
        self._started_after = prometheus.Histogram(
            "spottrain_placed_to_running_seconds",
            "From there until they run: images, volumes",
            ("namespace",),
            buckets=RESTART_SECONDS,
            registry=self.registry,
        )
        self._window = prometheus.Histogram(
            "spottrain_notice_window_seconds",
            "From the notice for a node until its last sign of life",
            ("provider",),
            buckets=WINDOW_SECONDS,
            registry=self.registry,
        )
        self._workers = self._gauge("job_workers_running", "Running workers", (*job, "capacity"))
        self._wanted = self._gauge(
            "job_workers_desired", "Workers the job asks for; none while it is suspended", job
        )
        self._shortfall = self._gauge(
            "job_floor_shortfall",
            "On-demand workers missing from the floor of a job that runs or starts",
            job,
        )
        self._slack = self._gauge(
            "job_deadline_slack_seconds",
            "What is to spare until completeBy if all goes well from now on; below 0: missing",
            job,
        )
        self._fallback = self._gauge(
            "job_fallback_workers", "Workers on on-demand nodes because spot had no room", job
        )
        self._attempt = self._gauge("job_attempt", "Number of the job's newest attempt", job)
        self._step = self._gauge("job_step", "Last step that the job is known to have done", job)
        self._checkpoint = self._gauge(
            "job_checkpoint_timestamp_seconds", "When the job's newest checkpoint was made, Unix time", job
        )
        self._deaf = prometheus.Gauge(
            "spottrain_spot_nodes_unheard",
            "Spot nodes, of clouds that give notices, without an agent that would hear one",
            registry=self.registry,
        )
        self._passes = self._counter("reconciles", "Passes over a job", ("result",))
        self._requests = self._counter(
            "api_requests",
            "Requests to the API server; code `none` got no answer",
            ("method", "resource", "code"),
        )
        self.costs = costs.Costs(self.registry, teams=teams)
        pool = ("capacity", "zone", "instance_type")
        self._pool_hazard = self._gauge("pool_hazard", "Losses per machine-hour, as learnt of the pool", pool)
        self._pool_resting = self._gauge("pool_resting", "1 while the pool is left alone after a loss", pool)
        self._queue = prometheus.Gauge(
            "spottrain_queue_length", "Jobs that wait for a pass", registry=self.registry
        )
        self._silence = self._gauge(
            "watch_silence_seconds", "Since the API server was last heard of on this watch", ("watch",)
        )

    def _counter(self, name: str, text: str, labels: tuple[str, ...]) -> prometheus.Counter:
        return prometheus.Counter(f"spottrain_{name}", text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, labels: tuple[str, ...]) -> prometheus.Gauge:
        return prometheus.Gauge(f"spottrain_{name}", text, labels, registry=self.registry)

    def passed(self, result: str) -> None:
        """One pass ended: `ok`, `conflict` or `error`."""
        self._passes.labels(result).inc()

    def sent(self, method: str, resource: str, code: str) -> None:
        """One request to the API server, of a kind and perhaps its subresource."""
        self._requests.labels(method, resource, code).inc()

    def queued(self, length: int) -> None:
        """So many jobs wait."""
        self._queue.set(length)

    def count_deaf_nodes(self, count: cabc.Callable[[], float]) -> None:
        """Ask there at each scrape: an agent's silence is no event."""
        self._deaf.set_function(count)

    def time_watch(self, name: str, silence: cabc.Callable[[], float]) -> None:
        """Ask there at each scrape for how many seconds nothing was heard: silence is no event."""
        self._silence.labels(name).set_function(silence)

    def lasted(self, provider: str, seconds: float) -> None:
        """So long a machine lasted after its notice."""
        self._window.labels(provider).observe(seconds)

    def pools(self, found: cabc.Mapping[tuple[str, str, str], tuple[float, bool]]) -> None:
        """Hazard and rest of all pools that are known, by capacity, zone and instance type."""
        self._pool_hazard.clear()
        self._pool_resting.clear()
        for labels, (hazard, resting) in found.items():
            self._pool_hazard.labels(*labels).set(hazard)
            self._pool_resting.labels(*labels).set(resting)

    def saw(self, change: Change) -> None:
        """Count what a pass has recorded; nothing is counted that wasn't written."""
        self._announce(change.namespace)
        before, after = change.before, change.after
        self._count_reclaims(change)
        self._failures.labels(change.namespace).inc(max(0, after.failures - before.failures))
        if after.over and not before.over:
            self._ended.labels(change.namespace, str(after.phase)).inc()
        begun = [one for one in after.attempts if one.number > before.attempt]
        for attempt in begun:
            self._attempts.labels(change.namespace, str(attempt.cause)).inc()
        self._observe_restart(change)
        self._show(change)

    def _announce(self, namespace: str) -> None:
        """Series exist at 0 before their first event, or `increase()` would never see it."""
        self._failures.labels(namespace)
        for end in ENDS:
            self._ended.labels(namespace, str(end))
        for histogram in (self._running_after, self._placed_after, self._started_after):
            histogram.labels(namespace)
        for cause in status.Cause:
            self._attempts.labels(namespace, str(cause))

    def _count_reclaims(self, change: Change) -> None:
        for one in change.reclaims:
            place = (one.capacity, one.provider, one.zone, one.instance_type)
            self._reclaims.labels(change.namespace, one.cause, *place).inc(
                exemplar=_life(change, one.attempt)
            )

    def _observe_restart(self, change: Change) -> None:
        after = change.after
        if not after.attempts or not after.attempts[-1].running:
            return
        last = after.attempts[-1]
        old = next((one for one in change.before.attempts if one.number == last.number), None)
        if last.cause is status.Cause.RECLAIMED and last.running and (old is None or old.running is None):
            seconds: dt.timedelta = last.running - last.start
            whole = self._running_after.labels(change.namespace)
            whole.observe(seconds.total_seconds(), exemplar=_life(change, last.number))
            if change.placed is not None:
                # By the API server's clock, in whole seconds.
                placed = min(max(change.placed, last.start), last.running)
                self._placed_after.labels(change.namespace).observe((placed - last.start).total_seconds())
                self._started_after.labels(change.namespace).observe((last.running - placed).total_seconds())

    def _show(self, change: Change) -> None:
        job, workers = (change.namespace, change.name), change.after.workers
        over = change.after.over
        running = {"spot": workers.spot, "on-demand": workers.on_demand}
        running["unknown"] = workers.running - workers.spot - workers.on_demand
        for capacity, count in running.items():
            self._workers.labels(*job, capacity).set(0 if over else count)
        idle = over or change.after.phase is status.Phase.SUSPENDED
        self._wanted.labels(*job).set(0 if idle else workers.desired)
        self._fallback.labels(*job).set(0 if over else workers.fallback)
        met = conditions.find(change.after.conditions, conditions.FLOOR_MET)
        waits = not over and change.after.attempt > 0 and met is not None and met.status is not True
        self._shortfall.labels(*job).set(max(0, change.floor - workers.on_demand) if waits else 0)
        self._attempt.labels(*job).set(change.after.attempt)
        if change.after.step is not None:
            self._step.labels(*job).set(change.after.step)
        newest = change.after.checkpoint
        if newest is not None and newest.time is not None:
            self._checkpoint.labels(*job).set(newest.time.timestamp())

        if change.slack is None:
            _remove(self._slack, *job)
        else:
            self._slack.labels(*job).set(change.slack)

    def forget(self, namespace: str, name: str) -> None:
        """The job is gone, and its series with it."""
        for capacity in ("spot", "on-demand", "unknown"):
            _remove(self._workers, namespace, name, capacity)
        last = (self._attempt, self._step, self._checkpoint)
        for gauge in (self._wanted, self._shortfall, self._slack, self._fallback, *last):
            _remove(gauge, namespace, name)


def _life(change: Change, attempt: int) -> dict[str, str]:
    """The exemplar that leads from a point on a board to a job's attempt.

    The namespace is a label of the series already, and OpenMetrics allows 128 characters.
    """
    return {"job": change.name, "attempt": str(attempt)}


def _remove(gauge: prometheus.Gauge, *labels: str) -> None:
    """A job whose only pass was the one that found it gone has no series."""
    with contextlib.suppress(KeyError):
        gauge.remove(*labels)
