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
