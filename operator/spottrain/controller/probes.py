"""`/healthz`, `/readyz` and `/metrics`."""

import asyncio
import collections.abc as cabc

from aiohttp import web
from prometheus_client import exposition as prometheus

from spottrain.kube import reflector, served
from spottrain.metrics import registry

DEAF_AFTER = 180.0
"""Seconds without a sign of life on a watch. Bookmarks come about once a minute."""
DEAD_AFTER = 600.0


class Health:
    """What the probes say.

    Ready when the resource has every field and every cache is filled and heard of lately. Alive
    unless a watch is deaf for long.
    """

    def __init__(self, reflectors: cabc.Sequence[reflector.Reflector], resource: served.Served) -> None:
        self._reflectors = reflectors
        self._resource = resource
        self._started = asyncio.get_running_loop().time()

    def unready(self) -> list[str]:
        """Sentences on what is amiss; none when ready."""
        waiting = [f"{one.name}: not listed yet" for one in self._reflectors if not one.synced.is_set()]
        wrong = [self._resource.fault] if self._resource.fault else []
        return wrong + waiting + self.deaf(DEAF_AFTER)

    def deaf(self, limit: float) -> list[str]:
        """Sentences on watches that were silent for longer than `limit` seconds."""
        ages = [(one.name, self.silence(one)) for one in self._reflectors]
        return [f"{name}: nothing heard for {age:.0f} s" for name, age in ages if age > limit]

    def silence(self, one: reflector.Reflector) -> float:
        """Seconds since the last sign of life on that watch, or since the start before the first."""
        return asyncio.get_running_loop().time() - max(one.heard, self._started)


async def serve(port: int, health: Health, metrics: registry.Metrics) -> web.AppRunner:
    """Start serving on all addresses."""

    async def healthz(_: web.Request) -> web.Response:
        return _answer(health.deaf(DEAD_AFTER))

    async def readyz(_: web.Request) -> web.Response:
        return _answer(health.unready())

    async def exposition(asked: web.Request) -> web.Response:
        """In the format that is asked for; exemplars are OpenMetrics' alone."""
        encode, kind = prometheus.choose_encoder(asked.headers.get("Accept", ""))
        return web.Response(body=encode(metrics.registry), headers={"Content-Type": kind})

    app = web.Application()
    app.add_routes(
        [web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", exposition)]
    )
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, port=port).start()
    return runner


def _answer(faults: list[str]) -> web.Response:
    return web.Response(status=503 if faults else 200, text="\n".join(faults) or "ok")
