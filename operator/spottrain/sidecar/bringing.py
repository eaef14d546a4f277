"""The init container: it brings the newest checkpoint that the attempt may take into the directory."""

import random
import shutil
from dataclasses import dataclass
from pathlib import Path

from spottrain.checkpoint import claim, lineage, manifest, store, transfer, view
from spottrain.sidecar import layouts, notebook
from spottrain.train import release, settings
from spottrain.train.clock import Clock
from spottrain.train.log import Log

_ARRIVING = ".spottrain-arriving"
_FIRST_LOOK_SECONDS, _SLOWEST_LOOK_SECONDS = 0.5, 5.0


@dataclass(frozen=True)
class Bringer:
    """One worker's beginning. `leads`: it takes the attempt's place, and the others go by what it took."""

    told: settings.Settings
    root: Path
    leads: bool
    place: store.Store
    clock: Clock
    words: Log

    def bring(self) -> int | None:
        """Fill the directory; the step it is from, None for a fresh start.

        Raises what `claim` does, NotReleased, and AllBroken when every checkpoint is damaged.
        """
        me = self.told.claimant("")
        if self.told.go_file is not None:
            release.wait(self.told.go_file, me.attempt_id, self.clock, lambda: False)
        if not self.leads:
            self._wait_for_the_claim(me)
        claimed = claim.claim(self.place, me, now=self.clock.unix(), skipped=self._skip)
        step = self._bring_best(me, claimed)
        notebook.Notebook(self.root).note(layouts.find(self.root))
        return step

    def _wait_for_the_claim(self, me: claim.Claimant) -> None:
        """Until worker 0 has chosen for all. It may wait for a node: how long is the operator's business."""
        records = lineage.Records(self.place)
        pause = _FIRST_LOOK_SECONDS
        while True:
            known = records.refresh()
            if any(record.attempt_id == me.attempt_id for record in known.values()):
                return
            claim.refuse_straggler(me, known)
            self.clock.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 - spreads the load, hides nothing
            pause = min(2 * pause, _SLOWEST_LOOK_SECONDS)

    def _bring_best(self, me: claim.Claimant, claimed: claim.Claim) -> int | None:
        """Without the attempt's own: all workers take the same, and worker 0 may have begun to save."""
        trail = [directory for directory in claimed.trail if directory.attempt_id != me.attempt_id]
        for found in view.sound(self.place, claimed.view, trail):
            if isinstance(found, view.Skipped):
                self._skip(found)
            elif problem := self._fetch(found):
                self._skip(view.Skipped(found.directory, problem))
            else:
                self._tell(claimed.record, found)
                return found.step
        if trail:
            claim.refuse_unless_fresh(me, trail)
        sentence = f"fresh start: no checkpoint to go on from under {self.place.uri}"
        self.words.info("fresh", sentence, **_words(claimed.record))
        return None

    def _fetch(self, commit: manifest.Commit) -> str | None:
        """Its files in their places, all of them or none."""
        arriving = self.root / _ARRIVING
        shutil.rmtree(arriving, ignore_errors=True)
        arriving.mkdir()
        try:
            problem = transfer.download(self.place, commit, 0, arriving)
            if problem is None:
                for file in commit.files_for(0):
                    target = self.root / file.name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    (arriving / file.name).replace(target)
        finally:
            shutil.rmtree(arriving, ignore_errors=True)
        return problem

    def _tell(self, record: lineage.Record, commit: manifest.Commit) -> None:
        name, step = commit.directory.name, commit.step
        sentence = f"brought step {step} to {self.root} (attempt {record.attempt}, commit {name})"
        self.words.info("restored", sentence, step=step, commit=name, **_words(record))

    def _skip(self, skipped: view.Skipped) -> None:
        name = skipped.directory.name
        sentence = f"skipping checkpoint {name}: {skipped.reason}"
        self.words.warning("skipped", sentence, step=skipped.directory.step, commit=name)


def _words(record: lineage.Record) -> dict[str, object]:
    return {"attempt": record.attempt, "attempt_id": record.attempt_id, "claim": record.seq}


def leads(told: settings.Settings, index: str) -> bool:
    """Whether the worker with this index leads: worker 0 of a gang, and whoever is alone."""
    return told.workers == 1 or index in {"", "0"}
