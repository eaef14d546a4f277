"""The agent's settings: flags, each with an environment variable (the chart sets those)."""

import argparse
import collections.abc as cabc
import dataclasses
import pathlib

from spottrain.agent import cluster, providers


@dataclasses.dataclass(frozen=True)
class Settings:
    """Parsed settings. No `provider`: it is found out. No `metadata_url`: the cloud's own."""

    node: str
    provider: str
    metadata_url: str
    window: float | None
    margin: float
    http_port: int
    log_level: str
    server: cluster.Server


def parse(arguments: cabc.Sequence[str], environment: cabc.Mapping[str, str]) -> Settings:
    """Settings from flags, then environment, then defaults; exits with a usage line on nonsense."""
    parser = argparse.ArgumentParser(prog="spottrain-agent", description="Hears the cloud's notices.")

    def flag(name: str, default: str, text: str) -> None:
        variable = "SPOTTRAIN_" + name.upper().replace("-", "_")
        value = environment.get(variable) or default
        parser.add_argument(
            f"--{name}", default=value, help=f"{text} ({variable}; default: {default or 'none'})"
        )

    flag("node-name", "", "the Node that this runs on")
    flag("provider", "auto", f"auto, {', '.join(providers.NAMES[:-1])} or {providers.NAMES[-1]}")
    flag("metadata-url", "", "http://HOST:PORT to ask in place of the cloud's metadata service")
    flag("notice-window", "", "seconds that pods get after a notice without a time (GCP)")
    flag("margin-seconds", "2", "seconds before the deadline by which workers must have ended")
    flag("agent-port", "29581", "port of /healthz, /readyz and /metrics, on the node's addresses")
    flag("api-url", cluster.Server.around(environment), "URL of the API server")
    flag("api-credentials", str(cluster.CREDENTIALS), "folder with token and ca.crt for the API server")
    flag("log-level", "INFO", "DEBUG, INFO, WARNING or ERROR")
    given = parser.parse_args(arguments)
    if not given.node_name or not given.api_url:
        parser.error("set --node-name and, outside a cluster, --api-url")
    if given.provider not in {"auto", *providers.NAMES}:
        parser.error(f"--provider {given.provider} is none of auto, {', '.join(providers.NAMES)}")
    if given.metadata_url and not given.metadata_url.startswith("http://"):
        parser.error(f"--metadata-url {given.metadata_url} must begin with http://")
    try:
        return Settings(
            node=given.node_name,
            provider="" if given.provider == "auto" else given.provider,
            metadata_url=given.metadata_url,
            window=_seconds(given.notice_window) if given.notice_window else None,
            margin=_seconds(given.margin_seconds),
            http_port=int(given.agent_port),
            log_level=given.log_level.upper(),
            server=cluster.Server(given.api_url, pathlib.Path(given.api_credentials)),
        )
    except ValueError as error:
        parser.error(str(error))


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < 86400:
        raise ValueError(f"{text} must be a number of seconds from 0 to a day")
    return seconds
