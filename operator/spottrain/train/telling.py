"""What a run tells of itself: `/progress` and `/metrics` while it lives, and its last word.

    {…, "total": 1000, "perSecond": 3.125, "resumedFrom": 20, "began": 1795965871.2,
     "checkpoint": {"step": 40, "time": 1795965891.8, "seconds": 12.1, "blockedSeconds": 0.84},
     "stop": {"seconds": 12.4, "graceSeconds": 25.0, "fits": true}}

`began`: when restore had brought the state and training went on (Unix seconds); `checkpoint`: the newest one
of this life; `stop`: what a stop would take until its save is committed, as measured. All of them are null as
long as they are not known.
"""

from dataclasses import replace
from typing import Any

from spottrain.train import metrics, pace, progress, restore, saver, settings, termination
from spottrain.train.clock import Clock
from spottrain.train.log import Log

FINISHED, PREEMPTED, STALE = termination.FINISHED, termination.PREEMPTED, termination.STALE


class Telling:
    """Keeps what there is to tell of one run. Read by the thread that serves it, written by the others."""

    def __init__(self, told: settings.Settings, pacer: pace.Pacer, clock: Clock, log: Log) -> None:
        self._told = told
        self._pacer = pacer
        self._clock = clock
        self._log = log
        self._progress = progress.Progress(told.attempt_id, log, self.report, self.metrics)
        self._restored: restore.Restored | None = None
        self._saved: saver.Verdict | None = None
        self._tally = metrics.Tally()
        self._fits: bool | None = None
        self._safe: float | None = None
        """Until then all work is in a checkpoint, on the monotonic clock."""
        self._began: float | None = None
        self.resumed_from: int | None = None
        self.total: int | None = None

    @property
    def step(self) -> int | None:
        """The last step that was done."""
        return self._progress.step

    def serve(self) -> None:
        """Answer from now on, where the operator asks for it."""
        if self._told.progress_port is not None:
            self._progress.serve(self._told.progress_port)

    def close(self) -> None:
        """Answer no more."""
        self._progress.close()

    def begin(self, pacer: pace.Pacer, restored: restore.Restored) -> None:
        """Training goes on from there, at the pace of `pacer`."""
        self._pacer, self._restored, self.resumed_from = pacer, restored, restored.step
        self._safe = self._clock.monotonic()
        self._began = self._clock.unix()

    def step_done(self, step: int, rank: int) -> None:
        """This step is done."""
        if self.step is None:
            self._log.info("first-step", f"first step {step} after restore", step=step, rank=rank)
        self._progress.step = step
        self._tally = replace(self._tally, steps=self._tally.steps + 1)

    def saved(self, verdict: saver.Verdict) -> None:
        """This save was committed, or came to nothing."""
        if not verdict.committed:
            self._tally = replace(self._tally, failed=self._tally.failed + 1)
            return
        self._saved, self._safe = verdict, self._clock.monotonic() - verdict.seconds
        self._tally = self._tally.saved(blocked=verdict.blocked, whole=verdict.seconds)

    def foresee(self) -> None:
        """Say whether a stop leaves time for a save, whenever the answer has changed."""
        outlook = self._pacer.outlook()
        fits = None if outlook is None else outlook.fits
        if outlook is None or fits is self._fits or (fits and self._fits is None):
            self._fits = fits
            return
        self._fits = fits
        every = self._pacer.interval(self._clock.monotonic())
        words = {"seconds": outlook.seconds, "grace": outlook.grace, "interval": every}
        needs = f"a save on SIGTERM takes about {outlook.seconds:.1f} s of the {outlook.grace:g} s of grace"
        if fits:
            self._log.info("grace-suffices", f"{needs}: it fits again", **words)
            return
        advice = "raise spec.spot.gracePeriod if the notice window allows it, or save less"
        sentence = f"{needs}: a reclaim loses what came since the last save, up to {every:.0f} s; {advice}"
        self._log.warning("grace-too-short", sentence, **words)

    def report(self) -> dict[str, Any]:
        """What `/progress` tells beside the step."""
        saved, outlook, rate = self._saved, self._pacer.outlook(), self._pacer.rate()
        return {
            "total": self.total,
            "perSecond": None if rate is None else round(rate, 4),
            "resumedFrom": self.resumed_from,
            "began": None if self._began is None else round(self._began, 3),
            "checkpoint": saved
            and {
                "step": saved.step,
                "time": round(saved.time, 3),
                "seconds": round(saved.seconds, 3),
                "blockedSeconds": round(saved.blocked, 3),
            },
            "stop": outlook
            and {
                "seconds": round(outlook.seconds, 3),
                "graceSeconds": outlook.grace,
                "fits": outlook.fits,
            },
        }

    def own_up(self, saved: saver.Verdict | None) -> None:
        """Say what is lost when the process ends now; `saved`: the newest save that was committed."""
        last = saved.step if saved else self.resumed_from
        if self.step is None or (last is not None and last >= self.step):
            return
        since = "the start" if last is None else f"step {last}"
        kept = "" if last is None else last
        self._log.warning("lost-work", f"what came after {since} is lost", step=self.step, saved=kept)

    def metrics(self) -> bytes:
        """The page for Prometheus."""
        saved, restored, outlook = self._saved, self._restored, self._pacer.outlook()
        moment = self._clock.monotonic()
        now = metrics.Reading(
            self._tally,
            step=self.step,
            total=self.total,
            rate=self._pacer.rate(),
            resumed_from=self.resumed_from,
            restore=restored.seconds if restored else None,
            skipped=restored.skipped if restored else None,
            saved_step=saved.step if saved else self.resumed_from,
            saved_time=saved.time if saved else restored.time if restored else None,
            interval=None if self._safe is None else self._pacer.interval(moment),
            unsaved=None if self._safe is None else moment - self._safe,
            stop=outlook.seconds if outlook else None,
            grace=self._told.grace,
        )
        return metrics.render(now)

    def say(self, state: str, saved: saver.Verdict | None) -> None:
        """Leave the last word; `saved`: the newest save that was committed."""
        outlook = self._pacer.outlook()
        word = termination.LastWord(
            state=state,
            step=self.step if self.step is not None else self.resumed_from,
            resumed_from=self.resumed_from,
            saved_step=saved.step if saved else self.resumed_from,
            save_seconds=saved.seconds if saved else None,
            blocked_seconds=saved.blocked if saved else None,
            fits_grace=None if outlook is None else outlook.fits,
        )
        termination.leave(self._told.termination_log, word, self._log)
