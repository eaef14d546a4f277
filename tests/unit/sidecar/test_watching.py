"""What the sidecar says when something is not stored that should be, in virtual time."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from spottrain.checkpoint import claim, files, location, view
from spottrain.sidecar import bringing, watching
from spottrain.train import log, settings
from tests.unit.sidecar import shapes
from tests.unit.train import virtual


class Story:
    """A watcher of a directory, and the clock that it goes by."""

    def __init__(self, tmp_path: Path, workers: int = 1, store: files.FilesStore | None = None) -> None:
        self.root = tmp_path / "volume"
        self.root.mkdir()
        told = settings.Settings(location.Location("unused"), attempt_id="a1", workers=workers)
        self.clock = virtual.VirtualClock()
        self.store = store or files.FilesStore(tmp_path / "ck")
        self.watcher = watching.Watcher(told, self.root, self.store, self.clock, log.Log(self.clock))

    def said_after(self, seconds: float) -> str | None:
        """A look, and another one that much later: what is told of it."""
        self.watcher._turn()
        self.clock.sleep(seconds)
        self.watcher._turn()
        return self.watcher._telling.problem

    def uploads(self) -> list[int]:
        """Look until what is there at rest is dealt with: the steps of all uploads, committed or not."""
        self.said_after(watching.RETRY_SECONDS)
        self.watcher._collect()
        return sorted(directory.step for directory in view.look(self.store).saves)


def half(root: Path) -> None:
    (shapes.hugging_face(root, 5) / "trainer_state.json").unlink()


def sharded(root: Path) -> None:
    shapes.distributed(root / "step-40")


def unreadable_end(root: Path) -> None:
    (root / "old.pt").write_bytes(b"\x80\x02}q\x00.")


@pytest.mark.parametrize(
    ("write", "text"),
    [
        (half, "checkpoint-5 has no trainer_state.json yet"),
        (sharded, "step-40 is in shards, and those of other workers are not here: it is not stored."),
        (unreadable_end, "old.pt is in a format that doesn't tell where it ends"),
    ],
)
def test_what_lies_there_and_cannot_be_stored_is_said_after_two_minutes(
    tmp_path: Path, write: Callable[[Path], None], text: str
) -> None:
    story = Story(tmp_path, workers=2)
    write(story.root)
    assert story.said_after(watching.COMPLAIN_SECONDS - 1) is None
    assert (story.said_after(2) or "").startswith(text)


def test_one_that_is_still_written_to_is_no_cause_for_complaint(tmp_path: Path) -> None:
    story = Story(tmp_path)
    half(story.root)
    story.said_after(watching.COMPLAIN_SECONDS - 1)
    shapes.tensors(story.root / "checkpoint-5" / "more.safetensors")
    assert story.said_after(watching.COMPLAIN_SECONDS - 1) is None


def test_a_directory_in_which_nothing_is_known_is_said_after_a_quarter_of_an_hour(tmp_path: Path) -> None:
    story = Story(tmp_path)
    assert story.said_after(2 * watching.UNKNOWN_SECONDS) is None, "there is nothing"
    (story.root / "model.h5").touch()
    assert story.said_after(1) == (
        f"nothing in {story.root} is a checkpoint that is known: see docs/zero-code.md"
    )


class Meddled(files.FilesStore):
    """A store that is so slow that the program writes to its file meanwhile."""

    def put_file(self, key: str, source: Path) -> None:
        super().put_file(key, source)
        with source.open("ab") as file:
            file.write(b"x")


def test_what_is_changed_while_it_is_uploaded_is_not_committed(tmp_path: Path) -> None:
    store = Meddled(tmp_path / "ck")
    story = Story(tmp_path, store=store)
    shapes.hugging_face(story.root, 5)
    story.uploads()
    assert story.watcher._telling.problem == (
        "rank 0: checkpoint-5/model.safetensors was changed while it was uploaded"
    )
    assert view.look(store).committed == []
    assert not list(story.root.glob(".spottrain-held-*"))


def test_a_number_that_comes_again_is_counted_on(tmp_path: Path) -> None:
    """The highest step of an attempt is its newest, and the 50 of resnet50.pt is no step at all."""
    story = Story(tmp_path)
    shapes.saved(story.root / "resnet50.pt", epoch=1)
    assert story.uploads() == [50]
    shapes.saved(story.root / "resnet50.pt", epoch=2)
    assert story.uploads() == [50, 51]


def test_once_a_later_attempt_has_the_place_nothing_more_is_uploaded(tmp_path: Path) -> None:
    story = Story(tmp_path)
    later = claim.Claimant("a2")
    claim.claim(story.store, later, now=0.0, skipped=lambda _: None)
    shapes.hugging_face(story.root, 5)
    assert story.uploads() == [5]
    assert "(a2) has taken over" in (story.watcher._telling.problem or "")
    shapes.hugging_face(story.root, 10)
    assert (story.uploads(), view.look(story.store).committed) == ([5], [])


@pytest.mark.skipif(os.getuid() != 0, reason="needs another user")
def test_what_another_user_may_not_read_says_which_setting_helps() -> None:
    with tempfile.TemporaryDirectory() as folder:  # below which another user comes, other than pytest's own
        Path(folder).chmod(0o755)
        story = Story(Path(folder))
        (shapes.hugging_face(story.root, 5) / "optimizer.pt").chmod(0o600)
        os.seteuid(65534)
        try:
            said = story.said_after(watching.COMPLAIN_SECONDS)
        finally:
            os.seteuid(0)
    assert said is not None
    assert "Permission denied" in said
    assert said.endswith("set securityContext.runAsUser in spec.template")


@pytest.mark.parametrize(
    ("workers", "index", "leads"), [(1, "7", True), (1, "", True), (3, "0", True), (3, "1", False)]
)
def test_worker_0_of_a_gang_and_whoever_is_alone_take_the_place(
    workers: int, index: str, leads: bool
) -> None:
    told = settings.Settings(location.Location("unused"), workers=workers)
    assert bringing.leads(told, index) is leads
