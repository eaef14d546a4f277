"""B7: a kill in mid-save, or damage later, leaves something that looks newest and cannot be loaded."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from spottrain.checkpoint import claim, layout, lineage, manifest, transfer
from spottrain.checkpoint.store import Put, Store
from tests.contract import gateway
from tests.train import processes
from tests.train.conftest import Shelf
from tests.unit.checkpoint import lives

SHARD = b"the other shard"


def save(store: Store, record: lineage.Record, step: int, folder: Path) -> layout.StepDir:
    """A checkpoint of counter.py with a second shard."""
    folder.mkdir()
    (folder / "count.json").write_text(json.dumps(step + 1))
    (folder / "shard").write_bytes(SHARD)
    directory = layout.StepDir(step, record.attempt_id, "00")
    writer = manifest.Writer(record.attempt_id, "00", record.seq)
    sent = transfer.upload(store, folder, directory, 0)
    claim.publish(store, lineage.Records(store), record, manifest.Commit(step, writer, sent, world_size=1))
    return directory


def shelve(store: Store, folder: Path) -> list[layout.StepDir]:
    """Good checkpoints of steps 90 and 100."""
    record = lives.start(store, "a", job_uid="").record
    return [save(store, record, step, folder / str(step)) for step in (90, 100)]


def change(store: Store, key: str, data: bytes) -> None:
    store.delete([key])
    assert store.put_if_absent(key, data) is Put.CREATED


def remove(store: Store, directory: layout.StepDir) -> None:
    store.delete([directory.commit_key, directory.key("count.json"), directory.key("shard")])


def leave_temporary(store: Store, directory: layout.StepDir) -> None:
    remove(store, directory)
    change(store, f"steps/{directory.name}.tmp/shard", SHARD)


def point_at_it(store: Store, directory: layout.StepDir) -> None:
    remove(store, directory)
    change(store, "latest", directory.name.encode())


def point_at_nothing(store: Store, directory: layout.StepDir) -> None:
    remove(store, directory)
    change(store, "latest", b"")


DAMAGE: dict[str, tuple[Callable[[Store, layout.StepDir], object], str]] = {
    "i a shard a byte short": (
        lambda store, one: change(store, one.key("shard"), SHARD[:-1]),
        "shard has 14 bytes instead of 15",
    ),
    "ii an empty shard": (
        lambda store, one: change(store, one.key("shard"), b""),
        "shard has 0 bytes instead of 15",
    ),
    "iii a shard missing": (lambda store, one: store.delete([one.key("shard")]), "shard is missing"),
    "iv a shard of other bytes": (
        lambda store, one: change(store, one.key("shard"), SHARD[::-1]),
        "shard has another checksum than when it was saved",
    ),
    "v latest names a step that is gone": (point_at_it, ""),
    "vi a temporary folder": (leave_temporary, ""),
    "vii an empty latest": (point_at_nothing, ""),
    "an empty COMMIT": (lambda store, one: change(store, one.commit_key, b""), "COMMIT.json cannot be read"),
    "no COMMIT yet": (lambda store, one: store.delete([one.commit_key]), ""),
}


@pytest.mark.parametrize(("damage", "why"), DAMAGE.values(), ids=DAMAGE)
def test_b7_the_newest_sound_one_is_resumed_and_the_broken_one_is_named(
    bench: processes.Bench,
    shelf: Shelf,
    tmp_path: Path,
    damage: Callable[[Store, layout.StepDir], object],
    why: str,
):
    _, newest = shelve(shelf.store, tmp_path)
    damage(shelf.store, newest)
    program = bench.start("counter.py", 92, **shelf.env)
    assert program.wait() == 0
    assert "resume 91 count 91" in program.output
    told = f"skipping checkpoint {newest.name}: "
    assert (told in program.output) == bool(why)
    assert why in program.output


def test_b7_when_every_step_is_broken_it_ends_with_an_error(
    bench: processes.Bench, shelf: Shelf, tmp_path: Path
):
    for directory in shelve(shelf.store, tmp_path):
        change(shelf.store, directory.key("count.json"), b"7")
    program = bench.start("counter.py", 92, **shelf.env)
    assert program.wait() == 1
    assert "all 2 checkpoints are damaged" in program.output
    assert "set checkpoint.onBroken: StartFresh to begin again" in program.output
    assert program.steps() == []

    allowed = bench.start("counter.py", 2, **shelf.env, SPOTTRAIN_ON_BROKEN="StartFresh")
    assert allowed.wait() == 0
    assert "fresh start at step 0" in allowed.output
    assert allowed.steps() == [0, 1]


@pytest.fixture(params=["files", "s3"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """Where the killed processes save, as arguments."""
    if request.param == "files":
        return [f"--uri={tmp_path.as_uri()}"]
    server: gateway.Gateway = request.getfixturevalue("s3_server")
    return [f"--uri=s3://{request.getfixturevalue('bucket')}/tr", f"--endpoint={server.endpoint}"]


def killed(bench: processes.Bench, target: list[str], kills: int, seed: int) -> None:
    command = [sys.executable, "-m", "bench.kills", *target, f"--kills={kills}", f"--seed={seed}"]
    path = f"{processes.ROOT}:{bench.env['PYTHONPATH']}"
    program = bench.run(command, PYTHONPATH=path)
    assert program.wait(60 + 3 * kills) == 0
    said = json.loads(program.output.splitlines()[-1])
    assert (said["rounds"], said["losses"]) == (kills, [])
    assert all(said["killed_while"].get(part) for part in ("restore", "save")), said["killed_while"]


def test_b7_after_a_kill_at_a_random_moment_the_newest_commit_is_restored_bit_by_bit(
    bench: processes.Bench, target: list[str]
):
    killed(bench, target, kills=25, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_b7_after_hundreds_of_kills_too(bench: processes.Bench, target: list[str]):
    killed(bench, target, kills=250, seed=2)
