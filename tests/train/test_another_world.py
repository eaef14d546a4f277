"""A run that goes on with another number of ranks: a choice before the first step, and no crash after it."""

import json
from pathlib import Path

from spottrain.checkpoint import layout
from tests.contract import gateway
from tests.train import processes


def gang(
    bench: processes.Bench, store: Path, world: int, steps: int, **env: object
) -> list[processes.Program]:
    common = {
        "WORLD_SIZE": world,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": gateway.free_port(),
        "STEPS": steps,
        "STEP_SECONDS": 0.01,
        "SPOTTRAIN_CHECKPOINT_URI": store.as_uri(),
        "SPOTTRAIN_CHECKPOINT_INTERVAL": 3600,
        **env,
    }
    return [bench.start("gang.py", RANK=rank, **common) for rank in range(world)]


def finish(ranks: list[processes.Program]) -> None:
    assert [rank.wait(60) for rank in ranks] == [0] * len(ranks)


def test_places_in_the_data_cannot_be_dealt_out_anew_unless_told_so(
    torch_bench: processes.Bench, tmp_path: Path
):
    store = tmp_path / "ck"
    finish(gang(torch_bench, store, 2, 3))
    (refused,) = gang(torch_bench, store, 1, 6)
    assert refused.wait(60) == 1
    assert "spottrain.errors.OtherWorld: step 2 was saved by 2 ranks" in refused.output
    assert refused.steps() == []

    (told,) = gang(torch_bench, store, 1, 6, SPOTTRAIN_ON_RESIZE="Continue")
    finish([told])
    assert told.steps() == [3, 4, 5]
    assert "step 2 was saved with ranks 2 and goes on with ranks 1" in told.output
    assert "step 3 rank 0 seen 4" in told.output, "rank 0 went on from its own place"


def test_what_all_ranks_have_alike_goes_on_with_any_number(torch_bench: processes.Bench, tmp_path: Path):
    store = tmp_path / "ck"
    finish(gang(torch_bench, store, 1, 3, ALIKE=1))
    ranks = gang(torch_bench, store, 2, 6, ALIKE=1)
    finish(ranks)
    assert [rank.steps() for rank in ranks] == [[3, 4, 5]] * 2
    assert all("fsdp loaded: False" in rank.output for rank in ranks), "whole models need none of it"
    assert "event=changed step=2 changed=ranks" in ranks[0].output
    assert "event=changed" not in ranks[1].output
    back = gang(torch_bench, store, 1, 7, ALIKE=1)
    finish(back)
    assert back[0].steps() == [6]


def test_another_version_is_told_and_changes_nothing(bench: processes.Bench, tmp_path: Path):
    env = {"SPOTTRAIN_CHECKPOINT_URI": (tmp_path / "ck").as_uri(), "SPOTTRAIN_CHECKPOINT_INTERVAL": 0}
    assert bench.start("counter.py", 2, **env).wait() == 0
    newest = processes.commits(tmp_path / "ck")[-1].directory
    written = tmp_path / "ck" / newest.key(layout.COMMIT)
    document = json.loads(written.read_text())
    document["versions"] = {"python": "3.10.1", "torch": "2.8.0"}
    written.write_text(json.dumps(document))
    again = bench.start("counter.py", 3, **env)
    assert again.wait() == 0
    assert again.steps() == [2]
    assert "step 1 was saved with python 3.10.1 and goes on with python 3.11" in again.output
