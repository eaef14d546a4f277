"""The board of what watches over the jobs: the operator and the agents."""

from manifests.monitoring.grafana import Board, Panel, Query, Row, stat
from manifests.monitoring.recorded import counted

_REQUESTS = "spottrain_api_requests_total"
_PASSES = "spottrain_reconciles_total"
_WRONG = 'spottrain_reconciles_total{result="error"}'


def _of_operators(series: str) -> str:
    """Of a series that every process has, those of the operators."""
    return f"{series} and on (instance) spottrain_queue_length"


OPERATOR = Row(
    "Operator",
    (
        stat("Operators", "One leads; the others stand by.", "count(spottrain_queue_length) or vector(0)"),
        stat(
            "Longest silence",
            "Of its watches. The API server says something about once a minute; over 180 s it isn't ready.",
            "max(spottrain_watch_silence_seconds)",
            "s",
        ),
        stat("Jobs that wait for a pass", "", "sum(spottrain_queue_length)"),
        stat(
            "Passes that fail",
            "In the last ten minutes.",
            f"(sum(rate({_WRONG}[10m])) or vector(0)) / sum(rate({_PASSES}[10m]))",
            "percentunit",
        ),
        stat("Agents armed", "Those that would hear a notice.", "sum(spottrain_agent_armed) or vector(0)"),
        stat(
            "Spot nodes unheard",
            "Of clouds that give notices, without an agent that would hear one.",
            "max(spottrain_spot_nodes_unheard)",
        ),
        Panel(
            "Silence of the watches",
            "Seconds since the API server was last heard of.",
            (Query("max by (watch) (spottrain_watch_silence_seconds)", "{{watch}}"),),
            "s",
        ),
        Panel(
            "Passes per second",
            "conflict: a newer object was on its way, and the pass is made again.",
            (Query(f"sum by (result) (rate({_PASSES}[$__rate_interval]))", "{{result}}"),),
            "none",
        ),
        Panel(
            "Jobs that wait for a pass",
            "It empties within seconds, but for a storm.",
            (Query("sum(spottrain_queue_length)", "jobs"),),
        ),
        Panel(
            "Requests to the API server per second",
            "By code; none: no answer.",
            (Query(f"sum by (code) (rate({_REQUESTS}[$__rate_interval]))", "{{code}}"),),
            "none",
        ),
        Panel(
            "Requests per second, by what they ask for",
            "The ten most frequent.",
            (
                Query(
                    f"topk(10, sum by (method, resource) (rate({_REQUESTS}[$__rate_interval])))",
                    "{{method}} {{resource}}",
                ),
            ),
            "none",
        ),
        Panel(
            "Memory",
            "One that watches some thousand pods needs about 300 MiB.",
            (Query(_of_operators("process_resident_memory_bytes"), "{{instance}}"),),
            "bytes",
        ),
        Panel(
            "CPU",
            "Cores in use.",
            (Query(_of_operators("rate(process_cpu_seconds_total[$__rate_interval])"), "{{instance}}"),),
            "none",
        ),
    ),
)
AGENTS = Row(
    "Agents",
    (
        Panel(
            "Agents that are blind, by source",
            "The source has not answered for so long that a notice may be missed.",
            (Query("sum by (source) (spottrain_agent_blind)", "{{source}}"),),
        ),
        Panel(
            "Oldest good answer, by source",
            "A source that waits for changes is silent for minutes while all is well.",
            (Query("max by (source) (spottrain_agent_last_success_age_seconds)", "{{source}}"),),
            "s",
        ),
        Panel(
            "Notices heard an hour",
            "Hints to save early among them.",
            (Query(counted("spottrain_agent_notices_total", "1h", "source, cause"), "{{source}} {{cause}}"),),
            stacked=True,
        ),
        Panel(
            "Failed looks per second",
            "By source and kind: none is no answer.",
            (
                Query(
                    "topk(10, sum by (source, kind) (rate(spottrain_agent_errors_total[$__rate_interval])))",
                    "{{source}} {{kind}}",
                ),
            ),
            "none",
        ),
        Panel(
            "Workers that agents deleted an hour",
            "Because the operator had not within two seconds of the notice.",
            (Query(counted("spottrain_agent_pods_deleted_total", "1h"), "workers"),),
        ),
    ),
)
BOARD = Board(
    "spottrain-health",
    "spottrain: operator and agents",
    "Whether losses are seen and answered. The agents' half needs the chart's agentMonitor.",
    (),
    (OPERATOR, AGENTS),
)
