"""B4: one rank is told to stop, and all of them stop, with one checkpoint."""

import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.contract import gateway
from tests.train import processes

GRACE = 25


def gang(
    bench: processes.Bench,
    store: Path,
    *,
    env_by_rank: Sequence[Mapping[str, object]] = ({}, {}),
    **env: object,
) -> list[processes.Program]:
    """Two ranks, rank 1 ahead of rank 0."""
    port = gateway.free_port()
    common = {
        "WORLD_SIZE": 2,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        "AHEAD": 1,
        "SPOTTRAIN_CHECKPOINT_URI": store.as_uri(),
        "SPOTTRAIN_CHECKPOINT_INTERVAL": 1,
        "SPOTTRAIN_GRACE_SECONDS": GRACE,
        **env,
    }
    return [bench.start("gang.py", RANK=rank, **common, **own) for rank, own in enumerate(env_by_rank)]


def last_steps(ranks: list[processes.Program]) -> list[int]:
    return [rank.steps()[-1] for rank in ranks]


def stopped_together(ranks: list[processes.Program], store: Path) -> None:
    began = time.monotonic()
    assert [rank.wait(GRACE) for rank in ranks] == [75, 75]
    assert time.monotonic() - began < 10
    first, second = last_steps(ranks)
    assert first == second
    newest = processes.commits(store)[-1]
    assert newest.step == first
    assert {file.name for file in newest.files} == {"state.pt", "rank.pt", "rank-00001/rank.pt"}
    assert newest.world_size == 2
    assert f"stopping at step {first}: SIGTERM" in ranks[0].output
    for rank in ranks:
        assert "imed out" not in rank.output
        assert "Traceback" not in rank.output
        assert "done" not in rank.output


@pytest.mark.parametrize("told", [(0,), (1,), (0, 1)], ids=["rank-0", "rank-1", "both"])
def test_b4_all_ranks_stop_at_the_same_step(
    torch_bench: processes.Bench, tmp_path: Path, told: tuple[int, ...]
):
    store = tmp_path / "ck"
    ranks = gang(torch_bench, store)
    ranks[0].wait_for("event=saved")
    for number, rank in enumerate(told):
        if number:
            time.sleep(1)
        ranks[rank].send(signal.SIGTERM)
    stopped_together(ranks, store)


@pytest.mark.parametrize("fate", [signal.SIGKILL, signal.SIGSTOP])
def test_b4_a_dead_or_frozen_peer_does_not_hold_the_stop_up(
    torch_bench: processes.Bench, tmp_path: Path, fate: signal.Signals
):
    store = tmp_path / "ck"
    ranks = gang(torch_bench, store)
    ranks[0].wait_for("event=saved")
    ranks[1].send(fate)
    time.sleep(1)
    ranks[0].send(signal.SIGTERM)
    told = time.monotonic()
    assert ranks[0].wait(GRACE) == 75
    assert time.monotonic() - told < 5 + 3
    assert "event=gave-up" in ranks[0].output
    newest = processes.commits(store)[-1]
    assert newest.step <= ranks[0].steps()[-1]
