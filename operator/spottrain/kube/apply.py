"""Carries out a plan: the status first, then the acts, then the events.

The status write carries the resource version that the snapshot was taken from, so that a stale one fails.
What the server refuses is returned as a value: it goes into the next snapshot, and from there to the user.
"""

import collections.abc as cabc
import dataclasses
import enum
import logging
import secrets
from typing import Any

from spottrain.api import conditions, duration, names, status
from spottrain.kube import client as clients
from spottrain.kube import errors, mirror, observe, recent
from spottrain.plan import actions
from spottrain.plan import snapshot as snap
from spottrain.render import identity
from spottrain.render import job as render_job
from spottrain.render import pod as render_pod
from spottrain.render import service as render_service

Object = dict[str, Any]
STRICT = {"fieldValidation": "Strict"}
REPORT_PACE = 5.0
"""Seconds that a change of the Job's counts may wait to be written: each of a gang's pods changes them many
times while it is replaced, and nobody reads them then. Its start and its outcome are never held back."""
STATUS_PACE = 5.0
"""The same for what the status says for people alone: counts of workers, the words of a condition, and that
restore may begin."""
CROWD = 25
"""With so many jobs waiting for a pass both wait twice as long, with twice as many three times: in a storm
the API server has workers to make first."""
MAKING = (actions.EnsureService, actions.CreateJob, actions.CreatePod)
REPORT_AGAIN = 60.0
TRY_AGAIN = 10.0

_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of the acts: a refusal, seconds until another pass, whether what was tried would be taken."""

    refusal: snap.Refusal | None = None
    again: float | None = None
    taken: bool = False


@dataclasses.dataclass(frozen=True)
class Written:
    """What came of a status: the resource after it was written, or in how many seconds it wants to be."""

    raw: Object | None = None
    again: float | None = None


@dataclasses.dataclass(frozen=True)
class Sinks:
    """Where the answers to our writes go, so that the next snapshot sees them."""

    pod: cabc.Callable[[Object], None]
    job: cabc.Callable[[Object], None]


class Applier:
    """Carries out plans against one API server."""

    def __init__(self, client: clients.Client, world: observe.World, sinks: Sinks) -> None:
        self._client = client
        self._world = world
        self._sinks = sinks
        self.crowd: cabc.Callable[[], int] = lambda: 0
        """How many jobs wait for a pass just now."""
        self.reports = recent.Pace(REPORT_PACE, self._stretch)
        self._words = recent.Pace(STATUS_PACE, self._stretch)

    def _stretch(self) -> float:
        return 1.0 + self.crowd() / CROWD

    async def carry_out(self, raw: Object, snapshot: snap.Snapshot, plan: actions.Plan) -> Outcome:
        """Do the acts and send the events, once the plan's status is written.

        Raises:
            errors.KubeError: nothing is lost; the next pass plans anew from what it finds.

        """
        if not any(isinstance(one, actions.ReportJob) for one in plan.actions):
            self.reports.done(snapshot.uid)
        work = _Work(self, raw, snapshot)
        made, done = await clients.in_parallel([_make(work, plan), self._do_the_rest(work, raw, plan)])
        results = [*made, *done]
        refusal = next((one for one in results if isinstance(one, snap.Refusal)), None)
        waits = [one for one in results if isinstance(one, float)]
        return Outcome(refusal, min(waits, default=None), taken=TAKEN in results)

    async def _do_the_rest(self, work: "_Work", raw: Object, plan: actions.Plan) -> list["Result"]:
        acts = (work.act(one) for one in plan.actions if not isinstance(one, MAKING))
        events = (self._send_event(raw, event, work.snapshot) for event in plan.events)
        return await clients.in_parallel([*acts, *events])

    async def write_status(
        self, raw: Object, snapshot: snap.Snapshot, new: status.Status, *, sure: bool = False
    ) -> Written:
        """Write it if it says anything new that is kept; mere words may wait for others to come.

        To be `sure` that what the plan was made from is the newest, it is written even if nothing differs.

        Raises:
            errors.ConflictError: what the plan was made from is out of date.

        """
        old = raw.get("status") or {}
        if old and not sure and not snapshot.is_news(new):
            self._words.done(snapshot.uid)
            return Written()
        if old and not sure and new.decides_as(snapshot.status) and (wait := self._words.wait(snapshot.uid)):
            return Written(again=wait)
        rendered = status.render(new)
        removed = dict.fromkeys((old.keys() & status.FIELDS) - rendered.keys())
        body = {
            "metadata": {"resourceVersion": raw["metadata"]["resourceVersion"]},
            "status": {**removed, **rendered},
        }
        path = clients.SPOT_TRAINING_JOBS.path(snapshot.namespace, snapshot.name, "status")
        answer = await self._client.request("PATCH", path, body=body, content_type=clients.MERGE_PATCH)
        self._words.done(snapshot.uid)
        return Written(answer)

    async def _send_event(self, raw: Object, event: actions.Event, snapshot: snap.Snapshot) -> None:
        """Events help people and nobody else: one that can't be sent is logged, and the work goes on."""
        metadata = raw["metadata"]
        level = logging.WARNING if event.warning else logging.INFO
        _log.log(level, "%s/%s: %s: %s", snapshot.namespace, snapshot.name, event.reason, event.message)
        moment = duration.format_time(snapshot.now)
        body = {
            "metadata": {
                "name": f"{metadata['name']}.{secrets.token_hex(8)}",
                "namespace": metadata["namespace"],
            },
            "involvedObject": {
                "apiVersion": names.API_VERSION,
                "kind": names.KIND,
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "uid": metadata["uid"],
            },
            "type": "Warning" if event.warning else "Normal",
            "reason": event.reason,
            "message": event.message[:1024],
            "source": {"component": "spottrain"},
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
        }
        try:
            await self._client.request("POST", clients.EVENTS.path(metadata["namespace"]), body=body)
        except errors.KubeError as error:
            if isinstance(error, errors.ApiError) and _namespace_ends(error):
                return
            _log.warning("event %s of %s not sent: %s", event.reason, metadata["name"], error)


_WEBHOOK_SAYS_NO = " denied the request"
"""In the API server's words for a webhook's refusal; its code is the webhook's choice, 400 without one."""

NO_ANSWER = ("does not support dry run", "exceeded quota", "cannot create resource")
"""Refusals of a trial that say nothing of the Job: by a webhook with side effects, a quota, our rights."""


class Taken(enum.Enum):
    """The API server would take what was tried."""

    TAKEN = enum.auto()


TAKEN = Taken.TAKEN
Result = snap.Refusal | Taken | float | None
"""Of one act: a refusal, the outcome of a trial, seconds after which to try again, or done."""


async def _make(work: "_Work", plan: actions.Plan) -> list[Result]:
    """The Service first: workers would find nobody without it, and a namesake's may be about to go."""
    service = [await work.act(one) for one in plan.actions if isinstance(one, actions.EnsureService)]
    if any(one is not None for one in service):
        return service
    others = [one for one in plan.actions if isinstance(one, actions.CreateJob | actions.CreatePod)]
    if work.snapshot.independent and work.snapshot.refusal is not None:
        return await _make_carefully(work, others)
    return await clients.in_parallel(work.act(one) for one in others)


async def _make_carefully(work: "_Work", makes: cabc.Sequence[actions.Action]) -> list[Result]:
    """One, two, four at a time up to the first that is refused, as the Job controller does (slowStartBatch).

    A quota that has room for one more refuses fifty others otherwise, each time that an index ends.
    """
    results: list[Result] = []
    while makes and not any(isinstance(one, snap.Refusal) for one in results):
        count = max(1, len(results))
        results += await clients.in_parallel(work.act(one) for one in makes[:count])
        makes = makes[count:]
    return results


class _Work:
    """The acts of one plan."""

    def __init__(self, applier: Applier, raw: Object, snapshot: snap.Snapshot) -> None:
        self._applier = applier
        self._client = applier._client  # noqa: SLF001 - parts of one whole
        self._world = applier._world  # noqa: SLF001
        self._sinks = applier._sinks  # noqa: SLF001
        self._raw = raw
        self.snapshot = snapshot
        self._key = (snapshot.namespace, snapshot.name)
        self._identity = identity.Identity(snapshot.namespace, snapshot.name, snapshot.uid)

    async def act(self, action: actions.Action) -> Result:  # noqa: C901, PLR0911, PLR0912 - one per kind
        """One act; what is already so counts as done."""
        match action:
            case actions.EnsureService():
                return await self._ensure_service()
            case actions.CreateJob():
                return await self._create(clients.JOBS, self._job(), self._sinks.job)
            case actions.TryJob():
                return await self._try_job()
            case actions.CreatePod(overlay):
                return await self._create_pod(overlay)
            case actions.DeletePod(name, uid, grace, version):
                return await self._delete(clients.PODS, name, uid, grace, version)
            case actions.DeleteJob(uid):
                return await self._delete(clients.JOBS, self.snapshot.name, uid, None)
            case actions.DeleteSelf():
                return await self._delete(
                    clients.SPOT_TRAINING_JOBS, self.snapshot.name, self.snapshot.uid, None
                )
            case actions.SayGo(name, attempt_id):
                return await self._annotate(name, names.ANNOTATION_GO, attempt_id)
            case actions.AskToSave(name, moment):
                return await self._annotate(name, names.ANNOTATION_SAVE, duration.format_time(moment))
            case actions.TrainUntil(name, moment):
                return await self._annotate(name, names.ANNOTATION_TRAIN_UNTIL, duration.format_time(moment))
            case actions.SuspendJob(suspend):
                held: Object = {"spec": {"suspend": suspend}}
                return await self._patch(clients.JOBS, self.snapshot.name, held, self._sinks.job)
            case actions.ScaleJob(parallelism):
                return await self._scale(parallelism)
            case actions.ReportJob():
                return await self._report(action)

    async def _annotate(self, pod: str, key: str, value: str) -> Result:
        told: Object = {"metadata": {"annotations": {key: value}}}
        return await self._patch(clients.PODS, pod, told, self._sinks.pod)

    async def _ensure_service(self) -> Result:
        """When a gang starts anew it is there, unless somebody deleted it.

        To ask costs less than a create that is refused.
        """
        body = render_service.render(self._identity, self.snapshot.valid_spec)
        if self.snapshot.job is not None:
            try:
                path = clients.SERVICES.path(self.snapshot.namespace, body["metadata"]["name"])
                return self._whose(await self._client.request("GET", path), clients.SERVICES, body, None)
            except errors.NotFoundError:
                pass
        return await self._create(clients.SERVICES, body, None)

    def _job(self) -> Object:
        labels = self._raw["metadata"].get("labels") or {}
        return render_job.render(self._identity, self.snapshot.valid_spec, labels)

    async def _try_job(self) -> Result:
        """A dry run. One that can't tell, as with a quota that the old Job fills, says nothing against it."""
        body = self._job()
        body["metadata"]["generateName"] = f"{body['metadata'].pop('name')}-"
        path, query = clients.JOBS.path(self.snapshot.namespace), {"dryRun": "All", **STRICT}
        try:
            await self._client.request("POST", path, body=body, query=query)
        except errors.RefusedError as error:
            cannot_tell = any(words in error.message for words in NO_ANSWER)
            return TAKEN if cannot_tell else self._refusal(error)
        except errors.NotFoundError:
            return None
        except errors.KubeError as error:
            _log.warning("%s/%s: the edited template can't be tried: %s", *self._key, error)
            return max(TRY_AGAIN, error.retry_after or 0.0)
        return TAKEN

    async def _create_pod(self, overlay: actions.Overlay) -> Result:
        job = self._world.live_job(self._key)
        if job is None:
            return 1.0
        mold = render_pod.Mold(
            job=self._identity,
            wishes=self.snapshot.valid_spec,
            job_uid=job["metadata"]["uid"],
            template=job["spec"]["template"],
            settings=self.snapshot.settings,
        )
        return await self._create(clients.PODS, render_pod.render(mold, overlay), self._sinks.pod)

    async def _create(
        self, resource: clients.Resource, body: Object, sink: cabc.Callable[[Object], None] | None
    ) -> Result:
        try:
            answer = await self._client.request(
                "POST", resource.path(self.snapshot.namespace), body=body, query=STRICT
            )
        except errors.ConflictError:
            return await self._exists(resource, body, sink)
        except errors.RefusedError as error:
            return self._refusal(error)
        except errors.NotFoundError:
            return None  # the namespace is gone, and we with it
        if sink:
            sink(answer)
        return None

    async def _exists(
        self, resource: clients.Resource, body: Object, sink: cabc.Callable[[Object], None] | None
    ) -> Result:
        """An object of that name is there: ours from an earlier try, a dying namesake's, or a stranger's."""
        name = body["metadata"]["name"]
        try:
            found = await self._client.request("GET", resource.path(self.snapshot.namespace, name))
        except errors.NotFoundError:
            return 0.5
        return self._whose(found, resource, body, sink)

    def _whose(
        self,
        found: Object,
        resource: clients.Resource,
        body: Object,
        sink: cabc.Callable[[Object], None] | None,
    ) -> Result:
        seen_by_watch = names.LABEL_JOB in (found["metadata"].get("labels") or {})
        if sink and seen_by_watch:
            sink(found)
        if _same_owner(found, body):
            return None
        if found["metadata"].get("deletionTimestamp") or _owner_kind(found) == _owner_kind(body):
            return 1.0
        if resource is clients.JOBS and seen_by_watch:
            return None  # the Job is in the cache now; the policy says NameConflict
        what = f"{body['kind']} {body['metadata']['name']}"
        message = f"{what} exists and is not this job's; delete or rename it"
        return snap.Refusal(conditions.NAME_CONFLICT, message, self.snapshot.generation, permanent=False)

    def _refusal(self, error: errors.RefusedError) -> Result:
        """The server's own words. A quota may get room and a policy may change; the rest is final."""
        waits = (error.code == 403 or _WEBHOOK_SAYS_NO in error.message) and not _namespace_ends(error)
        reason = conditions.CREATION_REFUSED if waits else conditions.TEMPLATE_REJECTED
        if _namespace_ends(error):
            reason = conditions.NAMESPACE_TERMINATING
        return snap.Refusal(reason, error.message[:1024], self.snapshot.generation, permanent=not waits)

    async def _delete(
        self, resource: clients.Resource, name: str, uid: str, grace: int | None, version: str = ""
    ) -> Result:
        only_if = {"uid": uid, **({"resourceVersion": version} if version else {})}
        body: Object = {"preconditions": only_if, "propagationPolicy": "Background"}
        if grace is not None:
            body["gracePeriodSeconds"] = grace
        try:
            answer = await self._client.request(
                "DELETE", resource.path(self.snapshot.namespace, name), body=body
            )
        except (errors.NotFoundError, errors.ConflictError):
            return None  # gone, another of the same name, or not as it was seen
        # One that somebody else's deletion has just overtaken comes back without a version: it is gone.
        if answer.get("kind") == "Pod" and answer["metadata"].get("resourceVersion") and grace != 0:
            self._sinks.pod(answer)
        return None

    async def _patch(
        self, resource: clients.Resource, name: str, body: Object, sink: cabc.Callable[[Object], None]
    ) -> Result:
        try:
            answer = await self._client.request(
                "PATCH",
                resource.path(self.snapshot.namespace, name),
                body=body,
                query=STRICT,
                content_type=clients.MERGE_PATCH,
            )
        except errors.NotFoundError:
            return None
        sink(answer)
        return None

    async def _scale(self, parallelism: int) -> Result:
        """What other tools read of us: a webhook that refuses it holds up no work."""
        sized: Object = {"spec": {"parallelism": parallelism}}
        try:
            return await self._patch(clients.JOBS, self.snapshot.name, sized, self._sinks.job)
        except errors.RefusedError as error:
            _log.warning("%s/%s: the Job's parallelism is refused: %s", *self._key, error)
            return REPORT_AGAIN

    def _may_wait(self, report: actions.ReportJob) -> bool:
        """A queue waits for the start and for the end of what it has suspended; everybody for the outcome."""
        job = self.snapshot.job
        if job is None or report.outcome is not None or report.started != bool(job.started):
            return False
        return not (job.suspended and report.active + report.terminating == 0)

    async def _report(self, report: actions.ReportJob) -> Result:
        if self._may_wait(report) and (wait := self._applier.reports.wait(self.snapshot.uid)):
            return wait
        path = clients.JOBS.path(self.snapshot.namespace, self.snapshot.name, "status")
        body = {"status": mirror.status(report, self.snapshot)}
        try:
            answer = await self._client.request("PATCH", path, body=body, content_type=clients.MERGE_PATCH)
        except errors.NotFoundError:
            return None
        except errors.RefusedError as error:
            # What other tools read of us. It is no reason to hold up the work.
            _log.warning("%s/%s: the Job's status is refused: %s", *self._key, error)
            self._applier.reports.done(self.snapshot.uid)
            return REPORT_AGAIN
        self._applier.reports.done(self.snapshot.uid)
        self._sinks.job(answer)
        return None


def _namespace_ends(error: errors.ApiError) -> bool:
    """Nothing can be created any more: all that is left to do is nothing."""
    return error.code == 404 or "because it is being terminated" in error.message


def _owner(raw: Object) -> Object:
    owners = raw["metadata"].get("ownerReferences") or ()
    return next((one for one in owners if one.get("controller")), {})


def _same_owner(found: Object, body: Object) -> bool:
    """Ours: the owner's UID, and for a pod the attempt ID, are the same."""
    ids = [
        (one["metadata"].get("annotations") or {}).get(names.ANNOTATION_ATTEMPT_ID) for one in (found, body)
    ]
    return bool(_owner(found)) and _owner(found).get("uid") == _owner(body).get("uid") and ids[0] == ids[1]


def _owner_kind(raw: Object) -> tuple[str, str]:
    owner = _owner(raw)
    return owner.get("kind", ""), owner.get("name", "")
