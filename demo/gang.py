"""All that is seen of one job while it runs: written by the watching threads, read as an immutable Run."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from demo import clock, lines
from demo.facts import Attempt, Fault, Member, Run
from demo.lines import Line
from demo.manifests import NAMESPACE
from demo.target import Site
from demo.watching import LogFollow, ObjectWatch
from spottrain.api import names


@dataclass
class _Seen:
    member: Member
    lines: list[Line] = field(default_factory=list)
    log: LogFollow | None = None


class Gang:
    """Watches a job, its pods and their logs from `start` to `stop`; raw copies go to `folder`."""

    def __init__(self, site: Site, run: Run, folder: Path) -> None:
        self._site = site
        self._run = run
        self._folder = folder
        self._capacity = {node.name: str(node.capacity) for node in site.nodes}
        self._lock = threading.Lock()
        self._seen: dict[str, _Seen] = {}
        self._status: dict[str, Any] = {}
        self._recorded: dict[int, float] = {}
        self._watches: list[ObjectWatch] = []

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        name = self._run.name
        jobs = f"/apis/{names.API_VERSION}/namespaces/{NAMESPACE}/{names.PLURAL}"
        pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
        self._watch("job", f"{jobs}?watch=1&fieldSelector=metadata.name%3D{name}", self._on_job)
        self._watch("pods", f"{pods}?watch=1&labelSelector={names.LABEL_JOB}%3D{name}", self._on_pod)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop watching; what was seen stays readable."""
        with self._lock:
            followers = [*self._watches, *(seen.log for seen in self._seen.values() if seen.log)]
        for follower in followers:
            follower.stop()
        for follower in followers:
            follower.join(timeout=5)

    def struck(self, fault: Fault) -> None:
        """Note a fault."""
        with self._lock:
            self._run = replace(self._run, faults=(*self._run.faults, fault))

    def so_far(self) -> Run:
        """What is known now."""
        with self._lock:
            status, recorded = self._status, dict(self._recorded)
            members = [replace(seen.member, said=tuple(seen.lines)) for seen in self._seen.values()]
        return replace(
            self._run,
            attempts=_attempts(members, status, recorded),
            phase=status.get("phase", ""),
            reclaims=status.get("reclaims", 0),
            failures=status.get("failures", 0),
            message=_message(status),
        )

    def logs_read(self, attempt: int) -> bool:
        """Whether the logs of the attempt's workers have been read to their end."""
        with self._lock:
            logs = [seen.log for seen in self._seen.values() if seen.member.attempt == attempt]
        return all(log is not None and not log.is_alive() for log in logs)

    def _watch(self, name: str, path: str, use: Any) -> None:
        watch = ObjectWatch(self._site.programs, self._folder / f"{name}.jsonl", path, use)
        self._watches.append(watch)
        watch.start()

    def _on_job(self, _: str, item: Mapping[str, Any]) -> None:
        with self._lock:
            self._status = dict(item.get("status") or {})
            for one in self._status.get("attempts", ()):
                self._recorded.setdefault(one["number"], clock.wall())

    def _on_pod(self, event: str, item: Mapping[str, Any]) -> None:
        name = item["metadata"]["name"]
        with self._lock:
            seen = self._seen.setdefault(name, _Seen(replace(_member(item), made=clock.wall())))
            node = item["spec"].get("nodeName", "")
            state = _container_state(item)
            seen.member = replace(seen.member, node=node, capacity=self._capacity.get(node, ""))
            if seen.member.bound is None and node:
                seen.member = replace(seen.member, bound=clock.wall())
            if seen.member.running is None and "running" in state:
                seen.member = replace(seen.member, running=clock.wall())
            if seen.log is None and state.keys() & {"running", "terminated"}:
                seen.log = self._follow(name, seen)
                seen.log.start()
            if seen.log is not None and (event == "DELETED" or "terminated" in state):
                seen.log.pod_ended()

    def _follow(self, pod: str, seen: _Seen) -> LogFollow:
        def use(text: str) -> None:
            if (line := lines.parse(text)) is not None:
                with self._lock:
                    seen.lines.append(line)

        return LogFollow(self._site.programs, self._folder / f"{pod}.log", (NAMESPACE, pod), use)


def _member(item: Mapping[str, Any]) -> Member:
    labels = item["metadata"]["labels"]
    return Member(
        index=int(labels[names.LABEL_INDEX]),
        attempt=int(labels[names.LABEL_ATTEMPT]),
        pod=item["metadata"]["name"],
    )


def _container_state(item: Mapping[str, Any]) -> Mapping[str, Any]:
    statuses = (item.get("status") or {}).get("containerStatuses") or [{}]
    state: Mapping[str, Any] = statuses[0].get("state") or {}
    return state


def _attempts(
    members: list[Member], status: Mapping[str, Any], recorded: Mapping[int, float]
) -> tuple[Attempt, ...]:
    """Every attempt of which the operator or a pod tells, by number."""
    told = {one["number"]: one for one in status.get("attempts", ())}
    numbers = sorted({*told, *(member.attempt for member in members)})
    return tuple(
        Attempt(
            number=number,
            members=tuple(sorted((m for m in members if m.attempt == number), key=lambda m: m.index)),
            cause=told.get(number, {}).get("cause", ""),
            reason=told.get(number, {}).get("reason", ""),
            detail=told.get(number, {}).get("detail", ""),
            recorded=recorded.get(number),
        )
        for number in numbers
    )


def _message(status: Mapping[str, Any]) -> str:
    """What stands in the way, in the operator's words."""
    conditions = {one["type"]: one for one in status.get("conditions", ())}
    failed, accepted, running = (conditions.get(name, {}) for name in ("Failed", "Accepted", "Running"))
    if failed.get("status") == "True":
        return str(failed["message"])
    if accepted.get("status") == "False":
        return str(accepted["message"])
    return str(running.get("message", "")) if running.get("status") == "False" else ""
