"""The agent's process: a thread per source, one that acts, one that answers probes."""

import logging
import os
import queue
import signal
import sys
import threading

from spottrain.agent import clock as clocks
from spottrain.agent import cluster, drill, engine, metrics, own_node, providers, serve, settings, watch

LOG = logging.getLogger(__name__)
LOOK_AGAIN = 30.0
"""Seconds between two looks for a cloud where there was none: a machine may be older in the cluster than its
providerID, and a metadata service may answer late."""


def main() -> None:
    """Run until SIGTERM."""
    given = settings.parse(sys.argv[1:], os.environ)
    logging.basicConfig(level=given.log_level, format="%(asctime)s %(levelname)s %(message)s")
    clock = clocks.Clock()
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, lambda *_: clock.end())
    run(given, clock)


def run(given: settings.Settings, clock: clocks.Clock) -> None:
    """Hear and act until the clock ends."""
    node = own_node.OwnNode(cluster.Cluster(given.server, clock), given.node)
    provider_id = _provider_id(node)
    provider = given.provider or _provider(provider_id, given.metadata_url)
    heard_from = providers.sources(
        provider, url=given.metadata_url, provider_id=provider_id, window=given.window, clock=clock
    )
    names = ", ".join(one.name for one in heard_from) or "nothing: this cloud gives no notice"
    LOG.info("node %s, provider %s; listening to %s", given.node, provider, names)
    sources = (*heard_from, drill.Drill(node, clock))
    counts = metrics.Metrics(sources)
    one = engine.Engine(node, sources, provider=provider, margin=given.margin, clock=clock, counts=counts)
    heard: queue.SimpleQueue[watch.Heard] = queue.SimpleQueue()
    threads = [
        threading.Thread(target=watch.watch, args=(source, heard.put, clock), name=source.name, daemon=True)
        for source in sources
    ]
    if provider == "none" and not given.provider and not providers.by_provider_id(provider_id):
        threads.append(
            threading.Thread(
                target=_look_again, args=(node, given.metadata_url, clock), name="cloud", daemon=True
            )
        )
    for thread in threads:
        thread.start()
    server = serve.serve(given.http_port, one, counts, lambda: all(thread.is_alive() for thread in threads))
    try:
        _act(one, heard, clock)
    finally:
        server.shutdown()
        server.server_close()


def _act(one: engine.Engine, heard: "queue.SimpleQueue[watch.Heard]", clock: clocks.Clock) -> None:
    """Whatever is heard is acted on at once; a signal ends it within an idle tick."""
    while not clock.ended:
        pause = one.act()
        try:
            one.take(heard.get(timeout=pause))
        except queue.Empty:
            continue
        while not heard.empty():
            one.take(heard.get())


def _look_again(node: own_node.OwnNode, url: str, clock: clocks.Clock) -> None:
    """End the process when there is a cloud after all: the next one begins with it."""
    while clock.wait(LOOK_AGAIN):
        found = _provider(_provider_id(node), url)
        if found != "none":
            LOG.warning("provider %s has been found: starting over with it", found)
            clock.end()


def _provider_id(node: own_node.OwnNode) -> str:
    """Of the Node; empty if it has none, or can't be asked now."""
    try:
        return str((node.get().get("spec") or {}).get("providerID") or "")
    except cluster.ClusterError as error:
        LOG.warning("the Node's providerID is not known: %s", error)
        return ""


def _provider(provider_id: str, url: str) -> str:
    """From the surest sign to the last resort."""
    found = providers.by_provider_id(provider_id) or providers.by_firmware() or providers.by_asking(url)
    return found or "none"
