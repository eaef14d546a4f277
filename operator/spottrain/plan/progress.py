"""What the first worker of a gang says of itself: into the status, and whether it stands still.

The library's rank 0 tells its step when it is asked (`train/progress.py`). `spec.progressTimeout`: a gang
that stays at one step for too long is stuck, and restarted. Only what it said itself is judged: the same step
in two answers that lie further apart than the timeout. What can't be read is never taken for a standstill;
that it can't is said.
"""

import collections.abc as cabc
import dataclasses

from spottrain.api import conditions, duration, spec, status
from spottrain.plan import draft as drafts
from spottrain.plan import loss, outlook
from spottrain.plan import snapshot as snap

STALLED = "Stalled"
Steps = tuple[int | None, int | None]
"""Of one life: where it went on, and the last one that it did."""
NO_STEPS: Steps = (None, None)


def asked(snapshot: snap.Snapshot) -> snap.Pod | None:
    """The worker that is to be asked for its step; None if nobody is."""
    if snapshot.independent:
        return None
    attempts, pod = snapshot.status.attempts, snapshot.current.get(0)
    wanted = needed(snapshot) or snapshot.settings.progress > 0
    if not wanted or snapshot.status.over or not attempts or not attempts[-1].running:
        return None
    return pod if pod is not None and pod.running and pod.deleting is None and pod.ip else None


def stalled(snapshot: snap.Snapshot) -> loss.Member | None:
    """Worker 0 with its verdict, if it has made no step for too long."""
    longest, said, pod = timeout(snapshot), snapshot.progress, asked(snapshot)
    if longest is None or pod is None or said is None or said.attempt_id != snapshot.status.attempt_id:
        return None
    if said.still < longest:
        return None
    place = "before its first step" if said.step is None else f"at step {said.step}"
    lasted, limit = duration.format_seconds(round(said.still)), duration.format_seconds(longest)
    text = f"{pod.name} has been {place} for {lasted}, and spec.progressTimeout is {limit}"
    return loss.Member(0, loss.Verdict(loss.Fate.FAILED, STALLED, text), pod)


def problem(snapshot: snap.Snapshot) -> str:
    """Why progress can't be watched although it is wished for; empty if it can."""
    if timeout(snapshot) is None or asked(snapshot) is None or snapshot.progress is None:
        return ""
    return snapshot.progress.problem


def needed(snapshot: snap.Snapshot) -> bool:
    """Something is decided on what it says."""
    wishes = snapshot.spec
    if isinstance(wishes, spec.InvalidSpecError):
        return False
    return wishes.progress_timeout is not None or wishes.complete_by is not None


def timeout(snapshot: snap.Snapshot) -> float | None:
    """After how many seconds at one step the job is stuck, if it says so."""
    return None if isinstance(snapshot.spec, spec.InvalidSpecError) else snapshot.spec.progress_timeout


def tell(draft: drafts.Draft) -> None:
    """Put what the workers have said into the status: the step, its rate, the checkpoint, and the grace."""
    _tell_last_words(draft)
    said = draft.snapshot.progress
    if said is not None and said.report is not None and said.attempt_id == draft.snapshot.status.attempt_id:
        _tell_report(draft, said.report)
    _tell_what_is_left_behind(draft)


def _tell_report(draft: drafts.Draft, report: snap.Report) -> None:
    known = draft.status.progress
    total = known.total if report.total is None else report.total
    rate = known.per_second if report.per_second is None else report.per_second
    told = status.Progress(total, rate, report.time)
    _mark_first_step(draft, report)
    draft.update(step=_newest(draft.status.step, report.step), progress=told)
    _tell_lives(draft, {draft.snapshot.status.attempt_id: (report.first, report.step)})
    if report.saved is not None and not _is_older(report.saved, draft.status.checkpoint):
        draft.update(checkpoint=report.saved)
    if report.stop is not None:
        _tell_grace(draft, report.stop)
    _tell_storing(draft, report.problem)


def _mark_first_step(draft: drafts.Draft, report: snap.Report) -> None:
    """Note once that this life makes steps."""
    begun = draft.status.attempt != draft.snapshot.status.attempt
    if report.step is None or begun or not draft.status.attempts:
        return
    *before, last = draft.status.attempts
    if last.stepping is None:
        restart = outlook.measured(draft.status.restart, last, report.time)
        draft.update(attempts=(*before, dataclasses.replace(last, stepping=report.time)), restart=restart)


def _tell_lives(draft: drafts.Draft, told: cabc.Mapping[str, Steps]) -> None:
    """Of attempts by their ID; a program that starts anew within its attempt goes on later."""
    attempts = list(draft.status.attempts)
    for place, one in enumerate(attempts):
        if one.id in told:
            first, last = _both((one.resume_step, one.last_step), told[one.id])
            attempts[place] = dataclasses.replace(one, resume_step=first, last_step=last)
    draft.update(attempts=tuple(attempts))


def _both(known: Steps, said: Steps) -> Steps:
    firsts = [step for step in (known[0], said[0]) if step is not None]
    return min(firsts, default=None), _newest(known[1], said[1])


def _is_older(said: status.Checkpoint, known: status.Checkpoint | None) -> bool:
    """By their times: a worker's last word is newer than what it told while it lived."""
    if known is None or known.time is None or said.time is None:
        return False
    return said.time < known.time


def _tell_last_words(draft: drafts.Draft) -> None:
    """Of pods that have ended; the termination message of a life says what it saved last."""
    lives: dict[str, Steps] = {}
    for pod in (*draft.snapshot.departed, *draft.snapshot.pods):
        if pod.said is None:
            continue
        draft.update(step=_newest(draft.status.step, pod.said.step))
        lives[pod.attempt_id] = _both(lives.get(pod.attempt_id, NO_STEPS), (pod.said.first, pod.said.step))
        known, step = draft.status.checkpoint, pod.said.saved_step
        if step is None or pod.said.save_seconds is None or (known is not None and known.step >= step):
            continue
        moment = pod.said.saved_time or (pod.exit.finished if pod.exit else None)
        draft.update(checkpoint=status.Checkpoint(step, moment, pod.said.save_seconds))
    _tell_lives(draft, lives)


def _tell_grace(draft: drafts.Draft, stop: snap.Stop) -> None:
    needs = f"a save on SIGTERM takes about {_about(stop.seconds)} s of the {stop.grace:g} s of grace"
    if stop.fits:
        draft.condition(conditions.GRACE_SUFFICIENT, True, conditions.SAVE_FITS, needs)
        return
    text = f"{needs}: a reclaim loses what came since the last save"
    draft.fault(conditions.GRACE_SUFFICIENT, conditions.SAVE_TOO_SLOW, text)


def _tell_what_is_left_behind(draft: drafts.Draft) -> None:
    """A program that has finished has done its work, whatever its sidecar had no time or no store for."""
    for pod in draft.snapshot.current.values():
        if pod.outcome == "Succeeded" and pod.said is not None and pod.said.state == snap.UNSAVED:
            text = f"{pod.name} finished, and its last checkpoint was not stored"
            advice = "the log of its container spottrain-watch says why"
            _tell_storing(draft, f"{text}: {advice}")


def _tell_storing(draft: drafts.Draft, problem: str) -> None:
    """Only a sidecar says so: of what it leaves lying the program knows nothing."""
    if problem:
        draft.fault(conditions.CHECKPOINTS_STORED, conditions.NOT_STORED, problem)
    else:
        draft.mended(conditions.CHECKPOINTS_STORED, conditions.STORED, "they are stored again")


def _about(seconds: float) -> str:
    """Two digits: the third differs from save to save."""
    return f"{float(f'{seconds:.2g}'):g}"


def _newest(known: int | None, said: int | None) -> int | None:
    return max((step for step in (known, said) if step is not None), default=None)
