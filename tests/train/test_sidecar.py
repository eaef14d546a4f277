"""The containers beside a program that nobody may change, as processes with a real store."""

import json
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

from spottrain.checkpoint import files, view
from spottrain.sidecar import watching
from tests.contract import faults, gateway
from tests.train import processes
from tests.unit.sidecar import shapes

TRAINER = processes.ROOT / "tests" / "node" / "programs" / "trainer.py"


class Pod:
    """One pod's life: its directory, which starts empty, and its containers."""

    def __init__(self, bench: processes.Bench, tmp_path: Path, attempt: int, **env: object) -> None:
        self.bench = bench
        self.folder = tmp_path / f"volume-{attempt}"
        self.folder.mkdir()
        self.said = tmp_path / f"said-{attempt}"
        self.said.touch()
        self.env = {
            "SPOTTRAIN_JOB": "tr",
            "SPOTTRAIN_JOB_UID": "u",
            "SPOTTRAIN_INDEX": 0,
            "SPOTTRAIN_ATTEMPT": attempt,
            "SPOTTRAIN_ATTEMPT_ID": f"a{attempt}",
            "SPOTTRAIN_CHECKPOINT_URI": (tmp_path / "ck").as_uri(),
            "SPOTTRAIN_CHECKPOINT_DIRECTORY": self.folder,
            "SPOTTRAIN_TERMINATION_LOG": self.said,
            "SPOTTRAIN_GRACE_SECONDS": 10,
            **env,
        }

    def helper(self, act: str, **env: object) -> processes.Program:
        return self.bench.run([sys.executable, "-m", "spottrain.sidecar", act], **{**self.env, **env})

    def restore(self, **env: object) -> processes.Program:
        """The init container, to its end."""
        program = self.helper("restore", **env)
        assert program.wait() == 0, program.output
        return program

    def train(self, total: int = 1000, **env: object) -> processes.Program:
        return self.bench.run([sys.executable, str(TRAINER), str(self.folder), str(total)], **env)

    def word(self) -> dict[str, object]:
        said: dict[str, object] = json.loads(self.said.read_text())
        return said


def steps(folder: Path) -> list[int]:
    return [commit.step for commit in processes.commits(folder)]


def end(sidecar: processes.Program) -> None:
    """As the kubelet does when the program has ended."""
    processes.wait_until_handled(sidecar)
    sidecar.send(signal.SIGTERM)
    assert sidecar.wait(20) == 0, sidecar.output


def test_a_program_that_knows_nothing_goes_on_from_its_newest_checkpoint(
    bench: processes.Bench, tmp_path: Path
):
    """The first life is killed, the second finishes; by the sum no step is missing or was done twice."""
    first = Pod(bench, tmp_path, 1)
    assert "event=fresh" in first.restore().output
    sidecar = first.helper("watch")
    program = first.train(STEP_SECONDS=0.4)
    sidecar.wait_for(r"event=saved step=\d+")
    program.wait_for(r"wrote checkpoint-20\n")
    program.send(signal.SIGKILL)
    program.wait()
    end(sidecar)
    newest = steps(tmp_path / "ck")[-1]
    assert newest == max(step for step in program.steps() if step % 5 == 0)
    assert (first.word()["state"], first.word()["savedStep"]) == ("stored", newest)

    second = Pod(bench, tmp_path, 2)
    second.restore().wait_for(rf"event=restored step={newest} ", seconds=1)
    sidecar = second.helper("watch")
    again = second.train(newest + 8, STEP_SECONDS=0.01)
    assert again.wait() == 0
    end(sidecar)
    assert f"begin at {newest} with {sum(range(newest))}\n" in again.output
    assert f"done at {newest + 8} with {sum(range(newest + 8))}\n" in again.output
    assert steps(tmp_path / "ck")[-1] == newest + 8


def test_what_is_saved_on_sigterm_is_stored_after_the_programs_end(bench: processes.Bench, tmp_path: Path):
    pod = Pod(bench, tmp_path, 1)
    pod.restore()
    sidecar = pod.helper("watch")
    program = pod.train(SIGTERM_SAVES="yes", STEP_SECONDS=0.4)
    sidecar.wait_for(r"event=saved step=\d+")
    program.send(signal.SIGTERM)
    assert program.wait() == 0
    end(sidecar)
    last = processes.commits(tmp_path / "ck")[-1]
    assert (last.step, last.stop) == (program.steps()[-1], True)


def test_what_a_kill_left_half_written_is_not_stored(bench: processes.Bench, tmp_path: Path):
    """The last flush waits for nothing, so completeness alone decides."""
    pod = Pod(bench, tmp_path, 1)
    pod.restore()
    sidecar = pod.helper("watch")
    shapes.hugging_face(pod.folder, 5)
    sidecar.wait_for("event=saved step=5 ")
    shapes.cut(shapes.hugging_face(pod.folder, 10) / "optimizer.pt")
    (shapes.hugging_face(pod.folder, 15) / "trainer_state.json").unlink()
    end(sidecar)
    assert steps(tmp_path / "ck") == [5]
    assert pod.word()["savedStep"] == 5


def test_of_several_that_wait_the_newest_is_stored(bench: processes.Bench, tmp_path: Path):
    pod = Pod(bench, tmp_path, 1)
    pod.restore()
    for step in (5, 10, 15):
        shapes.hugging_face(pod.folder, step)
    sidecar = pod.helper("watch")
    sidecar.wait_for("event=saved step=15 ")
    shapes.hugging_face(pod.folder, 20)
    end(sidecar)
    assert steps(tmp_path / "ck") == [15, 20]


def test_a_file_that_is_written_again_and_again_is_stored_each_time_it_rests(
    bench: processes.Bench, tmp_path: Path
):
    pod = Pod(bench, tmp_path, 1)
    pod.restore()
    sidecar = pod.helper("watch")
    for count in (0, 1, 2):
        shapes.saved(pod.folder / "ckpt.pt", count=count)
        sidecar.wait_for(f"event=saved step={count} ")
    end(sidecar)
    again = Pod(bench, tmp_path, 2)
    again.restore()
    assert (again.folder / "ckpt.pt").read_bytes() == (pod.folder / "ckpt.pt").read_bytes()
    sidecar = again.helper("watch")
    shapes.saved(again.folder / "ckpt.pt", count=3)
    sidecar.wait_for("event=saved step=3 ")


def test_nothing_is_stored_again_that_was_restored_or_stored(bench: processes.Bench, tmp_path: Path):
    """Also when the sidecar itself is killed and its kubelet starts it anew."""
    pod = Pod(bench, tmp_path, 1)
    pod.restore()
    sidecar = pod.helper("watch")
    shapes.hugging_face(pod.folder, 5)
    sidecar.wait_for("event=saved step=5 ")
    time.sleep(2 * watching.LOOK_SECONDS)
    sidecar.send(signal.SIGKILL)
    sidecar.wait()
    end(pod.helper("watch"))
    again = Pod(bench, tmp_path, 2)
    again.restore()
    end(again.helper("watch"))
    assert steps(tmp_path / "ck") == [5]


@pytest.mark.parametrize("after", [0.0, 0.02, 0.05, 0.1, 0.2, 0.4])
def test_a_kill_at_any_moment_of_a_save_leaves_the_newest_whole(
    bench: processes.Bench, s3_server: gateway.Gateway, bucket: str, tmp_path: Path, after: float
):
    env = {
        "SPOTTRAIN_CHECKPOINT_URI": f"s3://{bucket}/tr",
        "SPOTTRAIN_CHECKPOINT_ENDPOINT": s3_server.endpoint,
    }
    pod = Pod(bench, tmp_path, 1, **env)
    pod.restore()
    sidecar = pod.helper("watch")
    shapes.hugging_face(pod.folder, 5)
    sidecar.wait_for("event=saved step=5 ")
    shapes.tensors(shapes.hugging_face(pod.folder, 10) / "model.safetensors", 1_000_000)
    deadline = time.monotonic() + 20
    while not list(pod.folder.glob(".spottrain-held-*")) and "step=10 " not in sidecar.output:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    time.sleep(after)
    sidecar.send(signal.SIGKILL)
    sidecar.wait()
    again = Pod(bench, tmp_path, 2, **env)
    brought = int(again.restore().wait_for(r"event=restored step=(\d+) ", seconds=1)[1])
    assert brought in {5, 10}
    if "event=saved step=10 " in sidecar.output:
        assert brought == 10
    kept = again.folder / f"checkpoint-{brought}"
    source = pod.folder / kept.name
    assert {path.name: path.read_bytes() for path in kept.iterdir()} == {
        path.name: path.read_bytes() for path in source.iterdir()
    }


def test_a_damaged_one_is_skipped_and_leaves_nothing_in_the_directory(bench: processes.Bench, tmp_path: Path):
    pod = Pod(bench, tmp_path, 1)
    pod.restore()
    sidecar = pod.helper("watch")
    for step in (5, 10):
        shapes.hugging_face(pod.folder, step)
        sidecar.wait_for(f"event=saved step={step} ")
    end(sidecar)
    newest = processes.commits(tmp_path / "ck")[-1]
    damaged = tmp_path / "ck" / newest.directory.key("checkpoint-10/optimizer.pt")
    damaged.write_bytes(bytes(damaged.stat().st_size))
    again = Pod(bench, tmp_path, 2)
    output = again.restore().output
    name = newest.directory.name
    assert f"skipping checkpoint {name}: checkpoint-10/optimizer.pt has another checksum" in output
    assert "event=restored step=5 " in output
    assert [path.name for path in again.folder.iterdir() if not path.name.startswith(".")] == ["checkpoint-5"]
    assert not (again.folder / ".spottrain-arriving").exists()


def test_restoring_waits_for_go_as_the_library_does(bench: processes.Bench, tmp_path: Path):
    """Until then the life before may still store what it saved last."""
    go = tmp_path / "annotations"
    pod = Pod(bench, tmp_path, 1, SPOTTRAIN_GO_FILE=go)
    waiting = pod.helper("restore")
    time.sleep(1)
    assert not (tmp_path / "ck" / "lineage").exists()
    go.write_text('spottrain.dev/go="a1"\n')
    assert waiting.wait() == 0
    assert processes.claims(tmp_path / "ck") == [1]


def test_the_other_workers_of_a_gang_bring_what_worker_0_chose(bench: processes.Bench, tmp_path: Path):
    first = Pod(bench, tmp_path, 1)
    first.restore()
    sidecar = first.helper("watch")
    shapes.hugging_face(first.folder, 5)
    sidecar.wait_for("event=saved step=5 ")
    end(sidecar)

    other = Pod(bench, tmp_path, 2, SPOTTRAIN_WORKERS=2)
    waiting = other.helper("restore", SPOTTRAIN_INDEX=1)
    time.sleep(1)
    assert list(other.folder.iterdir()) == [], "worker 0 has not chosen"
    shutil.copytree(other.folder, tmp_path / "volume-0")
    other.restore(SPOTTRAIN_CHECKPOINT_DIRECTORY=tmp_path / "volume-0")
    assert waiting.wait() == 0
    for folder in (tmp_path / "volume-0", other.folder):
        assert (folder / "checkpoint-5" / "optimizer.pt").exists()
    assert processes.claims(tmp_path / "ck") == [1, 2]


def test_a_worker_whose_attempt_is_over_does_not_wait_for_its_claim(bench: processes.Bench, tmp_path: Path):
    Pod(bench, tmp_path, 2).restore()
    late = Pod(bench, tmp_path, 1, SPOTTRAIN_WORKERS=2, SPOTTRAIN_INDEX=1).helper("restore")
    assert late.wait() == 1
    assert "spottrain.errors.StaleAttempt: attempt 2 (a2) has taken over" in late.output


def test_b16_a_sidecar_of_an_older_attempt_stores_nothing_more(bench: processes.Bench, tmp_path: Path):
    old = Pod(bench, tmp_path, 1)
    old.restore()
    sidecar = old.helper("watch")
    shapes.hugging_face(old.folder, 5)
    sidecar.wait_for("event=saved step=5 ")
    Pod(bench, tmp_path, 2).restore()
    shapes.hugging_face(old.folder, 10)
    sidecar.wait_for("attempt 2 .* has taken over")
    shapes.hugging_face(old.folder, 15)
    end(sidecar)
    assert steps(tmp_path / "ck") == [5]
    assert old.word()["state"] == "unsaved"
    end(old.helper("watch"))
    assert steps(tmp_path / "ck") == [5]


def test_shards_of_one_worker_among_several_are_not_stored(bench: processes.Bench, tmp_path: Path):
    """Nor by the flush; after two minutes it is said."""
    pod = Pod(bench, tmp_path, 1, SPOTTRAIN_WORKERS=2)
    pod.restore()
    sidecar = pod.helper("watch")
    shapes.distributed(pod.folder / "step-40")
    time.sleep(watching.REST_SECONDS + 2 * watching.LOOK_SECONDS)
    end(sidecar)
    assert not (tmp_path / "ck" / "steps").exists()


def test_the_shards_of_a_worker_that_is_alone_are_stored(bench: processes.Bench, tmp_path: Path):
    pod = Pod(bench, tmp_path, 1)
    pod.restore()
    sidecar = pod.helper("watch")
    shapes.distributed(pod.folder / "step-40", shards=2)
    sidecar.wait_for("event=saved step=40 ")
    (commit,) = processes.commits(tmp_path / "ck")
    assert [file.name for file in commit.files] == [
        "step-40/.metadata",
        "step-40/__0_0.distcp",
        "step-40/__1_0.distcp",
    ]


def test_old_ones_are_removed_as_the_job_says(bench: processes.Bench, tmp_path: Path):
    pod = Pod(bench, tmp_path, 1, SPOTTRAIN_CHECKPOINT_KEEP=1)
    pod.restore()
    sidecar = pod.helper("watch")
    for step in (5, 10, 15):
        shapes.hugging_face(pod.folder, step)
        sidecar.wait_for(f"event=saved step={step} ")
    sidecar.wait_for("removed 1 old checkpoints(.|\n)*removed 1 old checkpoints")
    store = files.FilesStore(tmp_path / "ck")
    assert [directory.step for directory in view.look(store).committed] == [15]


def test_a_store_that_fails_is_tried_again_and_the_program_never_notices(
    bench: processes.Bench, proxy: faults.Proxy, bucket: str, tmp_path: Path
):
    failing = [True]
    proxy.rule = lambda request: (
        faults.Answer(503, "SlowDown") if failing and request.is_put_of("/steps/") else None
    )
    env = {
        "SPOTTRAIN_CHECKPOINT_URI": f"s3://{bucket}/tr",
        "SPOTTRAIN_CHECKPOINT_ENDPOINT": proxy.endpoint,
    }
    pod = Pod(bench, tmp_path, 1, **env)
    pod.restore()
    sidecar = pod.helper("watch")
    shapes.hugging_face(pod.folder, 5)
    sidecar.wait_for("event=save-failed")
    sidecar.send(signal.SIGTERM)
    sidecar.wait_for("event=save-failed(.|\n)*event=save-failed")
    assert pod.word()["state"] == "unsaved"
    failing.clear()
    assert sidecar.wait(20) == 0
    assert "event=saved step=5 " in sidecar.output
    assert (pod.word()["state"], pod.word()["savedStep"]) == ("stored", 5)


def test_a_store_that_fails_at_its_start_keeps_the_sidecar_waiting(
    bench: processes.Bench, proxy: faults.Proxy, bucket: str, tmp_path: Path
):
    """Its kubelet would start it anew later and later."""
    env = {
        "SPOTTRAIN_CHECKPOINT_URI": f"s3://{bucket}/tr",
        "SPOTTRAIN_CHECKPOINT_ENDPOINT": proxy.endpoint,
    }
    pod = Pod(bench, tmp_path, 1, **env)
    pod.restore()
    failing = [True]
    proxy.rule = lambda request: faults.Answer(503, "SlowDown") if failing and request.is_list else None
    shapes.hugging_face(pod.folder, 5)
    sidecar = pod.helper("watch")
    sidecar.wait_for("event=not-stored")
    sidecar.send(signal.SIGTERM)
    sidecar.wait_for("event=not-stored(.|\n)*event=not-stored")
    failing.clear()
    assert sidecar.wait(20) == 0
    assert "event=saved step=5 " in sidecar.output


def test_what_is_restored_may_be_removed_by_any_user(bench: processes.Bench, tmp_path: Path):
    """The program rotates it away, and may be another user than its init container."""
    pod = Pod(bench, tmp_path, 1)
    pod.restore()
    sidecar = pod.helper("watch")
    shapes.hugging_face(pod.folder, 5)
    sidecar.wait_for("event=saved step=5 ")
    again = Pod(bench, tmp_path, 2)
    again.restore()
    folder = again.folder / "checkpoint-5"
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o666}
    assert folder.stat().st_mode & 0o777 == 0o777


def test_the_library_refuses_to_save_beside_a_sidecar(bench: processes.Bench, tmp_path: Path):
    program = bench.start("counter.py", 3, **Pod(bench, tmp_path, 1).env)
    assert program.wait() == 1
    assert "ConfigError: spec.checkpoint.directory is for programs that don't use" in program.output


def test_without_a_directory_the_sidecar_says_what_is_missing(bench: processes.Bench, tmp_path: Path):
    program = Pod(bench, tmp_path, 1).helper("watch", SPOTTRAIN_CHECKPOINT_DIRECTORY=tmp_path / "none")
    assert program.wait() == 1
    assert "none is no directory: mount the volume of checkpoints there" in program.output
