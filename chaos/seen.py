"""Every status of every job, as a watch shows them; written by the watching thread, read as values."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chaos import facts
from chaos.facts import Told
from demo import clock
from demo.kubectl import Programs
from demo.manifests import NAMESPACE
from demo.watching import ObjectWatch
from spottrain.api import names

JOBS = f"/apis/{names.API_VERSION}/namespaces/{NAMESPACE}/{names.PLURAL}"


class Seen:
    """Statuses by the name of the job. Names are never used twice."""

    def __init__(self, programs: Programs, folder: Path) -> None:
        self._lock = threading.Lock()
        self._told: dict[str, list[Told]] = {}
        self._watches = (
            ObjectWatch(programs, folder / "jobs.jsonl", f"{JOBS}?watch=1", self._take),
            # For people who look into what went wrong.
            ObjectWatch(programs, folder / "pods.jsonl", _PODS, lambda *_: None),
        )

    def start(self) -> None:
        """Begin to watch."""
        for watch in self._watches:
            watch.start()

    def stop(self) -> None:
        """Watch no more; what was seen stays."""
        for watch in self._watches:
            watch.stop()
        for watch in self._watches:
            watch.join(timeout=5)

    def told(self, job: str) -> tuple[Told, ...]:
        """All statuses of this job so far."""
        with self._lock:
            return tuple(self._told.get(job, ()))

    def phase(self, job: str) -> str:
        """Of the newest status."""
        found = self.told(job)
        return found[-1].phase if found else ""

    def _take(self, _: str, item: Mapping[str, Any]) -> None:
        one = facts.told(clock.wall(), item)
        with self._lock:
            self._told.setdefault(item["metadata"]["name"], []).append(one)


_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods?watch=1"
