"""The zero-code example, and what real torch writes."""

import signal
import sys
from pathlib import Path

import pytest

from lab import torch_env
from spottrain.sidecar import completeness, layouts, whole
from tests.train import processes
from tests.train.test_sidecar import Pod, end

TRAIN = processes.ROOT / "examples" / "zero-code" / "train.py"
EPOCHS = 12
WRITE = """
import sys, torch
from pathlib import Path
import torch.distributed.checkpoint as dcp
folder = Path(sys.argv[1])
layer = torch.nn.Linear(64, 64)
optimizer = torch.optim.Adam(layer.parameters())
state = {"epoch": 3, "global_step": 1234, "state_dict": layer.state_dict(), "more": optimizer.state_dict()}
for name in ("ckpt", "lightning"):
    (folder / name).mkdir()
torch.save(state, folder / "ckpt" / "state.pt")
torch.save(state, folder / "lightning" / "last.ckpt")
dcp.save({"model": layer.state_dict()}, checkpoint_id=folder / "dcp" / "step-7", no_dist=True)
"""


def final_loss(program: processes.Program) -> str:
    return program.wait_for(r"final_loss=(\S+)", seconds=1)[1]


def test_a_program_that_is_killed_ends_like_one_that_was_not(torch_bench: processes.Bench, tmp_path: Path):
    """To the last bit, and nobody has changed it."""

    def train(folder: Path, pause: float) -> processes.Program:
        told = {"CHECKPOINTS": folder, "DIGITS_EPOCHS": EPOCHS, "DIGITS_EPOCH_SECONDS": pause}
        return torch_bench.run([sys.executable, str(TRAIN)], **told)

    (tmp_path / "unbroken").mkdir()
    unbroken = train(tmp_path / "unbroken", 0)
    assert unbroken.wait(120) == 0

    first = Pod(torch_bench, tmp_path, 1)
    first.restore()
    sidecar = first.helper("watch")
    program = train(first.folder, 4)
    sidecar.wait_for(r"event=saved step=\d+")
    program.wait_for("epoch=2 ")
    program.send(signal.SIGKILL)
    program.wait()
    end(sidecar)

    second = Pod(torch_bench, tmp_path, 2)
    second.restore()
    again = train(second.folder, 0)
    assert again.wait(120) == 0
    assert "first_epoch=3\n" in again.output
    assert final_loss(again) == final_loss(unbroken)


def test_the_example_says_nothing_of_us() -> None:
    code = TRAIN.read_text().split('"""', 2)[2]
    assert "spottrain" not in code.lower()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What real torch writes."""
    folder = tmp_path_factory.mktemp("written")
    with processes.bench(tmp_path_factory.mktemp("bench"), torch_env.ensure()) as bench:
        assert bench.run([sys.executable, "-c", WRITE, str(folder)]).wait(120) == 0
    return folder


@pytest.mark.parametrize(
    ("folder", "layout", "step"),
    [
        ("ckpt", layouts.Layout.FILES, None),
        ("lightning", layouts.Layout.LIGHTNING, 1234),
        ("dcp", layouts.Layout.DISTRIBUTED, 7),
    ],
)
def test_what_torch_writes_is_known_and_complete(
    written: Path, folder: str, layout: layouts.Layout, step: int | None
) -> None:
    (unit,) = layouts.find(written / folder)
    assert (unit.layout, layouts.step(written / folder, unit)) == (layout, step)
    assert completeness.unfinished(written / folder, unit) is None


def test_a_file_of_torch_cut_anywhere_is_noticed(written: Path, tmp_path: Path) -> None:
    """In steps, as it is larger."""
    data = (written / "ckpt" / "state.pt").read_bytes()
    path = tmp_path / "state.pt"
    for size in (*range(0, len(data), 997), *range(len(data) - 100, len(data))):
        path.write_bytes(data[:size])
        assert whole.problem(path) is not None, f"{size} of {len(data)} bytes"
    (tmp_path / "lightning").mkdir()
    (tmp_path / "lightning" / "last.ckpt").write_bytes(data[:-1])
    (unit,) = layouts.find(tmp_path / "lightning")
    assert completeness.unfinished(tmp_path / "lightning", unit) is not None
