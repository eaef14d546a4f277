"""C9: a node may be taken soon, and the gang saves early, once and together, and trains on."""

from pathlib import Path

import pytest

from tests.train import processes
from tests.train.test_b04_stop_together import gang

RELEASED = 'spottrain.dev/go="0a"\n'


def hint(file: Path, moment: str) -> None:
    """As the kubelet writes the pod's annotations: another file takes the place of the one before."""
    fresh = file.with_suffix(".new")
    fresh.write_text(f'{RELEASED}spottrain.dev/save="{moment}"\n')
    fresh.replace(file)


@pytest.mark.parametrize("both", [True, False], ids=["all-pods", "rank-0-alone"])
def test_c9_one_hint_is_one_save_of_all_ranks_and_nobody_stops(
    torch_bench: processes.Bench, tmp_path: Path, both: bool
):
    """Whether rank 1's pod has it too makes no difference: who leads asks for it."""
    store, files = tmp_path / "ck", [tmp_path / "a0", tmp_path / "a1"]
    for file in files:
        file.write_text(RELEASED)
    env = {"SPOTTRAIN_CHECKPOINT_INTERVAL": 3600, "SPOTTRAIN_ATTEMPT_ID": "0a"}
    ranks = gang(torch_bench, store, env_by_rank=[{"SPOTTRAIN_GO_FILE": one} for one in files], **env)
    ranks[0].wait_for(r"step 2 ")

    for file in files if both else files[:1]:
        hint(file, "2026-01-01T12:00:00Z")
    saved = int(ranks[0].wait_for(r"event=saved step=(\d+)")[1])
    ranks[0].wait_for(rf"step {saved + 15} ")
    hint(files[0], "2026-01-01T12:00:00Z")
    ranks[0].pause(3)

    (only,) = processes.commits(store)
    assert (only.step, only.world_size) == (saved, 2)
    assert "event=early-save" in ranks[0].output
    assert ranks[1].steps()[-1] > saved + 15

    hint(files[0], "2026-01-01T12:10:00Z")
    ranks[0].wait_for(rf"event=saved step=(?!{saved} )\d+")
    assert len(processes.commits(store)) == 2
