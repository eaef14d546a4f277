"""The pages' commands that need no cluster: on a directory in place of the bucket they speak of."""

import re
from pathlib import Path

import pytest

from spottrain import batch
from spottrain.checkpoint import location
from tests.cli import shelf
from tests.docs import running, shell

BUCKET = "s3://bucket/prefix"
WALK = Path(shelf.__file__).parent / "programs/walk.py"
TRAIN = f"""
import runpy, sys
sys.argv = ["{WALK}", sys.argv[sys.argv.index("--steps") + 1], "nothing"]
runpy.run_path("{WALK}", run_name="__main__")
"""
OFFLINE = [one for one in shell.every() if running.anywhere(one)]


def fill_with_checkpoints(place: Path) -> None:
    """As docs/checkpoints.md tells of: A saves 200, B goes on from it to 250, then a late 300 of A comes."""
    steps = shelf.Shelf(location.Location(place.as_uri()), "")
    first = steps.begin("a1")
    made = steps.save(first, 200)
    steps.save(steps.begin("b2"), 250)
    late = steps.save(first, 300, commit=False)
    said = (steps.store.get(made.commit_key) or b"").decode()
    text = said.replace('"step": 200', '"step": 300').replace(made.nonce, late.nonce)
    steps.store.put_if_absent(late.commit_key, text.encode())


def fill_with_results(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPOTTRAIN_CHECKPOINT_URI", place.as_uri())
    with batch.session(model="whisper-large@3f2a91", parameters={"beams": 5}) as run:
        for row in run.todo([{"id": "a"}, {"id": "b"}]):
            run.write(row, "words")


def alike(line: str) -> str:
    """A line without what differs from run to run: which steps, which times."""
    return re.sub(r"\d+", "N", line)


@pytest.mark.parametrize("command", OFFLINE, ids=str)
def test_a_command_does_as_its_page_says(
    command: shell.Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store, folder = tmp_path / "store", tmp_path / "checkout"
    folder.mkdir()
    if "batch" in command.line:
        fill_with_results(store, monkeypatch)
    else:
        fill_with_checkpoints(store)
    reader = running.Reader(folder, {})
    reader.settle(command.block.page)
    (folder / "train.py").write_text(TRAIN)

    said = reader.run(command, {BUCKET: store.as_uri()}).splitlines()

    shown = command.output.splitlines()
    if "checkpoints ls" in command.line:
        assert [line.split()[:2] for line in said] == [line.split()[:2] for line in shown]
    elif "verify-resume" in command.line:
        assert [alike(line) for line in said] == [alike(line) for line in shown]
    elif shown:
        assert said == shown
    else:
        assert said
