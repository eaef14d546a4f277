"""The agent's metrics. Their series are bounded: sources and causes are few words."""

import collections.abc as cabc

import prometheus_client as prometheus

from spottrain.agent import notice, wire


class Metrics:
    """A registry of its own. A series is there before its first event, or `increase()` would not see it."""

    def __init__(self, sources: cabc.Sequence[notice.Source]) -> None:
        # A second series per counter that nobody reads.
        prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = prometheus.CollectorRegistry()
        prometheus.ProcessCollector(registry=self.registry)
        self._notices = prometheus.Counter(
            "spottrain_agent_notices",
            "Notices heard, each once",
            ("source", "cause"),
            registry=self.registry,
        )
        self._faults = prometheus.Counter(
            "spottrain_agent_errors",
            "Looks at a source that brought no answer, or none that could be understood",
            ("source", "kind"),
            registry=self.registry,
        )
        self._stopped = prometheus.Counter(
            "spottrain_agent_pods_deleted",
            "Workers deleted because nobody else had within two seconds of the notice",
            registry=self.registry,
        )
        self._armed = prometheus.Gauge(
            "spottrain_agent_armed", "1 while a notice would be heard", registry=self.registry
        )
        self._blind = prometheus.Gauge(
            "spottrain_agent_blind",
            "1 while a source has not answered for so long that a notice may be missed",
            ("source",),
            registry=self.registry,
        )
        self._age = prometheus.Gauge(
            "spottrain_agent_last_success_age_seconds",
            "Since the source's last good answer",
            ("source",),
            registry=self.registry,
        )
        for source in sources:
            for cause in source.causes:
                self._notices.labels(source.name, cause)
            for kind in wire.FAULTS:
                self._faults.labels(source.name, kind)

    def notice(self, source: str, cause: str) -> None:
        """A notice that no life of the agent has told before."""
        self._notices.labels(source, cause).inc()

    def fault(self, source: str, kind: str) -> None:
        """A look that failed."""
        self._faults.labels(source, kind).inc()

    def stopped(self) -> None:
        """A worker was deleted."""
        self._stopped.inc()

    def show(self, *, armed: bool, blind: cabc.Mapping[str, bool], ages: cabc.Mapping[str, float]) -> None:
        """How things are at the moment of a scrape; `ages`: seconds since each source's last good answer."""
        self._armed.set(armed)
        for source, one in blind.items():
            self._blind.labels(source).set(one)
        for source, age in ages.items():
            self._age.labels(source).set(age)
