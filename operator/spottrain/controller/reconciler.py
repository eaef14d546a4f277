"""One pass over one job, and the workers that make them."""

import asyncio
import collections.abc as cabc
import dataclasses
import logging
import secrets
from typing import Any

from spottrain.api import prices, status
from spottrain.api import spec as specs
from spottrain.controller import deadlines, queue
from spottrain.kube import apply, clock, errors, losses, observe, progress, recent, reflector, views
from spottrain.metrics import costs, registry
from spottrain.plan import actions, decide, outlook, storms
from spottrain.plan import progress as asking
from spottrain.plan import snapshot as snap
from spottrain.policy import hazard

Object = dict[str, Any]
WORKERS = 3
"""Passes at once; docs/decisions/0007-what-waits-to-be-written.md has the measurements."""
GONE_KEPT = 4096
TRIED_KEPT = 4096

_log = logging.getLogger(__name__)


class Jobs:
    """The SpotTrainingJobs as kopf's events, the sweep's lists and our own writes have shown them.

    The three arrive in no order. What a resource version says of it holds across namesakes too: one sequence
    counts all objects of a kind (KEP-5504).
    """

    def __init__(self) -> None:
        self._by_key: dict[reflector.Key, Object] = {}
        self._gone: recent.Recent[None] = recent.Recent(GONE_KEPT)

    def put(self, raw: Object) -> bool:
        """Take in a state unless a newer one is known; returns whether it was taken."""
        key = reflector.key_of(raw)
        known = self._by_key.get(key)
        if raw["metadata"]["uid"] in self._gone or (known is not None and _version(raw) <= _version(known)):
            return False
        self._by_key[key] = views.without_bookkeeping(raw)
        return True

    def remove(self, key: reflector.Key, uid: str) -> None:
        """It is gone for good. A namesake that has taken its place already stays."""
        self._gone.set(uid, None)
        known = self._by_key.get(key)
        if known is not None and known["metadata"]["uid"] == uid:
            del self._by_key[key]

    def replace(self, listed: cabc.Iterable[Object], version: int) -> set[reflector.Key]:
        """Take in a list of all jobs as they were at that version; returns every key that was or is known."""
        found = {reflector.key_of(raw): raw for raw in listed}
        absent = {key: raw for key, raw in self._by_key.items() if key not in found}
        for key, raw in absent.items():
            if _version(raw) <= version:  # a newer one was made while the list was under way
                self.remove(key, raw["metadata"]["uid"])
        for raw in found.values():
            self.put(raw)
        return absent.keys() | found.keys()

    def get(self, key: reflector.Key) -> Object | None:
        """The job's newest known state."""
        return self._by_key.get(key)


@dataclasses.dataclass(frozen=True)
class Result:
    """What a pass has planned and what came of it."""

    plan: actions.Plan
    written: apply.Written
    outcome: apply.Outcome


def _version(raw: Object) -> int:
    return int(raw["metadata"]["resourceVersion"])


class Reconciler:
    """observe → decide → apply, for each key that the queue hands out."""

    def __init__(
        self,
        jobs: Jobs,
        world: observe.World,
        applier: apply.Applier,
        settings: snap.Settings,
        metrics: registry.Metrics,
    ) -> None:
        self.jobs = jobs
        self.queue = queue.Queue()
        self._world = world
        self._applier = applier
        applier.crowd = self.queue.due
        self._settings = settings
        self._metrics = metrics
        self._refusals: dict[reflector.Key, tuple[str, snap.Refusal]] = {}
        """With the UID of the job that was refused: a namesake's may be accepted."""
        self._tried: recent.Recent[str] = recent.Recent(TRIED_KEPT)
        self.losses = losses.Losses()
        self.known: cabc.Mapping[snap.Pool, hazard.Record] = {}
        """What has been learnt of pools; kept up to date by whoever learns it."""
        self.prices: cabc.Callable[[], prices.Table] = prices.Table
        """What the ConfigMap of prices says, if there is one."""
        self.lacking: cabc.Callable[[], frozenset[str]] = frozenset
        """The fields that the API server drops, its resource being older."""
        self.team_label = ""
        """The label of jobs that names who pays; none: nobody asks."""
        self.progress = progress.Progress(self.queue.add, settings.progress)
        self.deadlines = deadlines.Deadlines(self.queue.add)

    async def run(self, ready: cabc.Awaitable[None]) -> None:
        """Work until cancelled; nothing is decided before every cache is filled."""
        await ready
        await asyncio.gather(*(self._work() for _ in range(WORKERS)))

    async def _work(self) -> None:
        while True:
            key = await self.queue.take()
            self._metrics.queued(len(self.queue))
            try:
                await self._pass(key)
                self._metrics.passed("ok")
            except errors.ConflictError:
                # What was decided on is out of date; the watch brings what is newer.
                self._metrics.passed("conflict")
                self.queue.fail(key)
            except errors.KubeError as error:
                self._metrics.passed("error")
                pause = self.queue.fail(key, at_least=error.retry_after or 0.0)
                _log.warning("%s/%s: %s; again in %.1f s", *key, error, pause)
            except Exception:  # noqa: BLE001
                # The one place where anything may surface: it is counted, logged whole and tried again.
                self._metrics.passed("error")
                pause = self.queue.fail(key)
                _log.exception("%s/%s: the pass broke; again in %.1f s", *key, pause)
            finally:
                self.queue.done(key)

    async def _pass(self, key: reflector.Key) -> None:
        raw = self.jobs.get(key)
        if raw is None:
            self._forget(key)
            return
        now = clock.now()
        moment = observe.Moment(
            now=now,
            fresh_id=secrets.token_hex(8),
            settings=self._settings,
            refusal=self._refusal(key, raw["metadata"]["uid"]),
            tried=self._tried.get(raw["metadata"]["uid"]) or "",
            losses=self.losses.since(now - storms.LONGEST_REST),
            known=dict(self.known),
            progress=self.progress.get(key),
            prices=self.prices(),
            plan=self.deadlines.get(key),
            lacking=self.lacking(),
        )
        await self._world.look_for_absent_nodes(key)
        snapshot = self._world.snapshot(raw, moment)
        plan = decide.decide(snapshot)
        for reclaim in (plan.status.last_reclaim, *plan.reclaims):
            self.losses.note(reclaim)
        self.progress.follow(key, _whom_to_ask(snapshot))
        question = outlook.question(snapshot)
        if question is not None:
            self.deadlines.ask(key, question)
        # Of an index that a newer status calls finished no pod may be made.
        sure = snapshot.independent and plan.makes_pods
        written = await self._applier.write_status(raw, snapshot, plan.status, sure=sure)
        if written.raw is not None:
            self.jobs.put(written.raw)
        self._metrics.saw(_change(snapshot, plan))
        if written.again is None:  # nothing is counted that wasn't written
            self._metrics.costs.paid(self._payer(raw, snapshot), snapshot.status.cost, plan.status.cost)
        else:
            plan = plan.unwritten()
        outcome = await self._applier.carry_out(written.raw or raw, snapshot, plan)
        self._remember(key, snapshot, outcome)
        if outcome.taken:
            self._tried.set(snapshot.uid, snapshot.template_hash)
        self._plan_next(key, snapshot, Result(plan, written, outcome))

    def _payer(self, raw: Object, snapshot: snap.Snapshot) -> costs.Payer:
        labels = raw["metadata"].get("labels") or {}
        priced = isinstance(snapshot.spec, specs.Spec) and snapshot.spec.prices is not None
        team = labels.get(self.team_label, "")
        return costs.Payer(snapshot.namespace, snapshot.name, snapshot.uid, team, priced)

    def _plan_next(self, key: reflector.Key, snapshot: snap.Snapshot, result: Result) -> None:
        plan, outcome = result.plan, result.outcome
        waits = [one for one in (plan.wake, outcome.again) if one is not None]
        news = outcome.refusal is not None and not _same(outcome.refusal, snapshot.refusal)
        if news:
            waits.append(0.0)  # so that its words get into the status
        if outcome.taken:
            waits.append(0.0)
        if outcome.refusal is not None and not outcome.refusal.permanent and not news:
            self.queue.fail(key)  # its words, and so the status, may differ each time
        else:
            self.queue.succeed(key)
            if plan.status.attempt != snapshot.status.attempt:
                waits.append(0.0)  # an intent was recorded; its own event brings nothing new
            elif result.written.raw is not None:
                waits.append(queue.PACE)
            elif result.written.again is not None:
                waits.append(result.written.again)
        self.queue.hurry(key, plan.status.phase is status.Phase.RESTARTING)
        if waits:
            self.queue.add(key, min(waits))

    def _remember(self, key: reflector.Key, snapshot: snap.Snapshot, outcome: apply.Outcome) -> None:
        """A refusal stands until the spec changes, or until a create goes through."""
        if outcome.refusal is not None:
            self._refusals[key] = (snapshot.uid, outcome.refusal)
        elif snapshot.refusal is not None and not (
            snapshot.refusal.permanent and snapshot.refusal.generation == snapshot.generation
        ):
            self._refusals.pop(key, None)
            self.queue.add(key)

    def _refusal(self, key: reflector.Key, uid: str) -> snap.Refusal | None:
        refused, refusal = self._refusals.get(key, ("", None))
        return refusal if refused == uid else None

    def _forget(self, key: reflector.Key) -> None:
        self._refusals.pop(key, None)
        self.progress.follow(key, None)
        self.deadlines.forget(key)
        self.queue.succeed(key)
        self.queue.hurry(key, False)
        self._world.pods.forget(key)
        self._metrics.forget(*key)
        self._metrics.costs.forget(key, clock.now())


def _whom_to_ask(snapshot: snap.Snapshot) -> progress.Target | None:
    pod = asking.asked(snapshot)
    if pod is None:
        return None
    return progress.Target(pod.attempt_id, pod.ip, asking.timeout(snapshot), asking.needed(snapshot))


def _same(new: snap.Refusal, known: snap.Refusal | None) -> bool:
    """The texts may differ: a quota's names the pod that it hit first."""
    return known is not None and (new.reason, new.generation) == (known.reason, known.generation)


def _change(snapshot: snap.Snapshot, plan: actions.Plan) -> registry.Change:
    floor = 0 if isinstance(snapshot.spec, Exception) else snapshot.spec.spot.floor
    before, after = snapshot.status, plan.status
    placed = max((pod.bound for pod in snapshot.current.values() if pod.bound), default=None)
    return registry.Change(
        snapshot.namespace, snapshot.name, floor, before, after, plan.reclaims, placed, plan.slack
    )
