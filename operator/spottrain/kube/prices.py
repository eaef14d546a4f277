"""The ConfigMap that has the prices of workers: one text, read again every minute."""

import asyncio
import logging

from spottrain.api import prices
from spottrain.kube import client as clients
from spottrain.kube import errors

KEY = "prices"
AGAIN = 60.0
"""Seconds between two reads."""
_log = logging.getLogger(__name__)


class Prices:
    """What it says now. What can't be read is told in the log once, and what was known before holds."""

    def __init__(self, client: clients.Client, namespace: str, name: str) -> None:
        self.table = prices.Table()
        self._client, self._namespace, self._name = client, namespace, name
        self._text: str | None = None
        self._trouble = ""

    async def read(self) -> None:
        """Ask for it once."""
        try:
            found = await self._client.request("GET", clients.CONFIG_MAPS.path(self._namespace, self._name))
        except errors.NotFoundError:
            self._tell(f"there is none in namespace {self._namespace}; make it, with the key {KEY}")
        except errors.KubeError as error:
            self._tell(str(error))
        else:
            self._take((found.get("data") or {}).get(KEY))

    def _take(self, text: str | None) -> None:
        if text is None:
            self._tell(f"it has no key {KEY}")
        elif text != self._text:
            self.table, problems = prices.table(text)
            self._text, self._trouble = text, ""
            for problem in problems:
                _log.warning("ConfigMap %s: %s; this line is left out", self._name, problem)

    def _tell(self, trouble: str) -> None:
        if trouble != self._trouble:
            _log.warning("no prices from ConfigMap %s: %s", self._name, trouble)
        self._trouble = trouble

    async def run(self) -> None:
        """Read it again and again, until cancelled."""
        while True:
            await asyncio.sleep(AGAIN)
            await self.read()
