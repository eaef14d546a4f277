"""The operator's settings: flags, each with an environment variable (the chart sets those)."""

import argparse
import collections.abc as cabc
import dataclasses
import secrets
import socket

from spottrain.api import clouds, notices
from spottrain.plan import snapshot as snap


@dataclasses.dataclass(frozen=True)
class Settings:
    """Parsed settings. No `namespaces` means all of them; no `lease` means there is one operator only.

    `pools_map` is the ConfigMap that keeps what is learnt of pools; none: it is learnt anew. `prices_map` is
    the one that has prices, and `team_label` the label of jobs that names who pays; both may be empty.
    """

    namespaces: tuple[str, ...]
    lease: str
    identity: str
    http_port: int
    log_level: str
    pools_map: str
    prices_map: str
    team_label: str
    decisions: snap.Settings


def parse(arguments: cabc.Sequence[str], environment: cabc.Mapping[str, str]) -> Settings:
    """Settings from flags, then environment, then defaults; exits with a usage line on nonsense."""
    parser = argparse.ArgumentParser(prog="spottrain-operator", description="Runs SpotTrainingJobs.")

    def flag(name: str, default: str, text: str) -> None:
        variable = "SPOTTRAIN_" + name.upper().replace("-", "_")
        value = environment.get(variable) or default
        parser.add_argument(
            f"--{name}", default=value, help=f"{text} ({variable}; default: {default or 'none'})"
        )

    flag("namespaces", "", "comma-separated namespaces to watch; none means all")
    flag("lease", "", "name of the Lease by which one of several operators leads; none means there is one")
    flag(
        "pools-map", "", "name of the ConfigMap that keeps what is learnt of pools; none means it is not kept"
    )
    flag("prices-map", "", "name of the ConfigMap that has the prices of workers; none means there is none")
    flag("team-label", "", "label of jobs that names who pays, for the metrics of cost; none means no label")
    flag("node-loss-seconds", "5", "how long a node may be NotReady before its workers are given up")
    flag("settlement-seconds", "75", "how long a lost node may still explain a worker's failure")
    flag("progress-seconds", "30", "how often a job's progress goes into its status; 0: never")
    flag("on-demand-labels", "", "comma-separated key=value that mark on-demand nodes here")
    flag("spot-labels", "", "comma-separated key=value that mark spot nodes here")
    flag("agents", "", "yes where notice agents are installed: a spot node without one is then worth a word")
    flag("notice-marks", "", "comma-separated marks of nodes that are about to go; a minus takes one away")
    flag(
        "helper-image",
        snap.Settings.helper_image,
        "image of the containers that keep checkpoints for programs without the library: this operator's own",
    )
    flag("http-port", "8080", "port of /healthz, /readyz and /metrics")
    flag("log-level", "INFO", "DEBUG, INFO, WARNING or ERROR")
    given = parser.parse_args(arguments)
    try:
        return Settings(
            namespaces=_list(given.namespaces),
            lease=given.lease,
            identity=environment.get("POD_NAME") or f"{socket.gethostname()}-{secrets.token_hex(4)}",
            http_port=int(given.http_port),
            log_level=given.log_level.upper(),
            pools_map=given.pools_map,
            prices_map=given.prices_map,
            team_label=given.team_label,
            decisions=snap.Settings(
                node_loss=_seconds(given.node_loss_seconds),
                settlement=_seconds(given.settlement_seconds),
                progress=_seconds(given.progress_seconds),
                agents=_yes(given.agents),
                helper_image=given.helper_image,
                on_demand_marks=_marks(given.on_demand_labels),
                spot_marks=_marks(given.spot_labels),
                notice_marks=notices.heeded(_list(given.notice_marks)),
            ),
        )
    except ValueError as error:
        parser.error(str(error))


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _seconds(text: str) -> float:
    seconds = float(text)
    if seconds < 0:
        raise ValueError(f"{text} is negative; give a number of seconds")
    return seconds


def _yes(text: str) -> bool:
    if text not in {"", "yes", "no"}:
        raise ValueError(
            f'"{text}" says neither whether there are agents nor that there are none; write yes or no'
        )
    return text == "yes"


def _marks(text: str) -> tuple[clouds.Mark, ...]:
    marks = []
    for part in _list(text):
        key, equals, value = part.partition("=")
        if not equals or not key or not value:
            raise ValueError(f'"{part}" is not a label; write key=value')
        marks.append(clouds.Mark(key, (value,)))
    return tuple(marks)
