"""Restoring and saving by several ranks at once, each rank a thread."""

import threading
from pathlib import Path
from typing import Any

import pytest

from spottrain import errors
from spottrain.checkpoint import layout, lineage, location, view
from spottrain.train import peers, restore, saver, settings, tracked
from spottrain.train.clock import SystemClock
from spottrain.train.log import Log
from tests.contract.memory import MemoryStore
from tests.unit.train import ranks

CLOCK = SystemClock()
OWN = "(its shard, its place in the data)"
LOG = Log(CLOCK)


class FailingFor(MemoryStore):
    """A store that one rank can't write to, or read from."""

    def __init__(self, write: str = "nowhere", read: str = "nowhere") -> None:
        super().__init__()
        self.write, self.read = write, read

    def put_file(self, key: str, source: Path) -> None:
        if self.write in key:
            raise errors.StoreUnavailable(f"cannot write {key}")
        super().put_file(key, source)

    def get_file(self, key: str, target: Path) -> str | None:
        if self.read in key:
            raise errors.StoreUnavailable(f"cannot read {key}")
        return super().get_file(key, target)


def told(attempt_id: str, **changes: Any) -> settings.Settings:
    return settings.Settings(location.Location("memory://"), attempt_id=attempt_id, job_uid="u", **changes)


def restored(
    store: MemoryStore, attempt_id: str, line: peers.Peers, *, resizable: bool = False, **changes: Any
) -> tuple[restore.Restored | None, dict[str, str]]:
    """What a rank begins with: where, and the files it was given."""
    files: dict[str, str] = {}

    def load(folder: Path) -> None:
        files.update({path.name: path.read_text() for path in folder.iterdir()})

    restorer = restore.Restorer(line, store, told(attempt_id, **changes), CLOCK, LOG)
    return restorer.restore(tracked.Given(load, resizable=resizable), lambda: False), files


def save(store: MemoryStore, record: lineage.Record, line: peers.Peers, step: int, folder: Path) -> Any:
    """A rank's part of a save, and what became of it."""
    mine = folder / f"{step}-{line.rank}"
    mine.mkdir()
    (mine / "own").write_text(f"{step} of rank {line.rank}")
    if line.rank == 0:
        (mine / "model").write_text(f"weights {step}")
    background = saver.Saver(line, saver.Place(store, record, keep=3), CLOCK, LOG)
    directory = layout.StepDir(step, record.attempt_id, f"{step:x}")
    background.submit(saver.Job(directory, mine, CLOCK.monotonic(), prune=True))
    return background.drain()


def live(store: MemoryStore, attempt_id: str, folder: Path, *steps: int, world: int = 3) -> list[Any]:
    """An attempt: all ranks restore, then save after these steps; the verdicts of the last, by rank."""

    def rank(line: peers.Peers) -> Any:
        begun, _ = restored(store, attempt_id, line)
        assert begun is not None
        verdicts = [save(store, begun.record, line, step, folder) for step in steps]
        return verdicts[-1] if verdicts else None

    return ranks.together(world, rank)


def committed(store: MemoryStore) -> list[int]:
    return sorted(directory.step for directory in view.look(store).committed)


def test_one_rank_claims_and_all_know(tmp_path: Path):
    store = MemoryStore()
    verdicts = live(store, "a", tmp_path, 7)
    assert [(verdict.step, verdict.committed) for verdict in verdicts] == [(7, True)] * 3
    assert lineage.Records(store).numbers() == [1]
    assert committed(store) == [7]


def test_each_rank_gets_what_is_for_all_and_what_is_its_own(tmp_path: Path):
    store = MemoryStore()
    live(store, "a", tmp_path, 7)
    outcome = ranks.together(3, lambda line: restored(store, "b", line))
    assert [files for _, files in outcome] == [
        {"model": "weights 7", "own": f"7 of rank {rank}"} for rank in range(3)
    ]
    assert [begun.step for begun, _ in outcome] == [7, 7, 7]


def test_a_rank_that_was_not_there_gets_rank_zeros(tmp_path: Path):
    store = MemoryStore()
    live(store, "a", tmp_path, 7, world=2)
    outcome = ranks.together(3, lambda line: restored(store, "b", line, resizable=True))
    assert outcome[2][1] == {"model": "weights 7", "own": "7 of rank 0"}


@pytest.mark.parametrize("world", [1, 3])
def test_another_number_of_ranks_is_refused_before_anything_is_loaded(tmp_path: Path, world: int):
    store = MemoryStore()
    live(store, "a", tmp_path, 7, world=2)
    outcome = ranks.together(world, lambda line: restored(store, "b", line))
    assert [type(error) for error in outcome] == [errors.OtherWorld] * world
    assert (
        f"step 7 was saved by 2 ranks, each something of its own {OWN}, and now there are {world}: run "
        in str(outcome[0])
    )


def test_what_rank_zero_saved_alone_is_for_any_number_of_ranks(tmp_path: Path):
    store = MemoryStore()
    live(store, "a", tmp_path, 7, world=1)
    outcome = ranks.together(3, lambda line: restored(store, "b", line))
    assert [files["model"] for _, files in outcome] == ["weights 7"] * 3


def test_damage_that_one_rank_meets_sends_all_to_the_next_best(tmp_path: Path):
    store = MemoryStore()
    live(store, "a", tmp_path, 5, 7)
    key = layout.StepDir(7, "a", "7").key("rank-00002/own")
    store.delete([key])
    store.put_if_absent(key, b"7 of rank 9")
    outcome = ranks.together(3, lambda line: restored(store, "b", line))
    assert [begun.step for begun, _ in outcome] == [5, 5, 5]
    assert outcome[0][0].skipped == 1
    assert [files["own"] for _, files in outcome] == [f"5 of rank {rank}" for rank in range(3)]


def test_b13_a_rank_that_cannot_read_stops_all(tmp_path: Path):
    store = FailingFor(read="rank-00002")
    live(store, "a", tmp_path, 7)
    outcome = ranks.together(3, lambda line: restored(store, "b", line))
    assert [type(error) for error in outcome] == [errors.StoreUnavailable] * 3


@pytest.mark.parametrize(
    ("wish", "kind"), [("Step:70", errors.NoSuchStep), ("Latest", errors.AllBroken)], ids=["pinned", "broken"]
)
def test_b13_what_rank_zero_finds_wrong_stops_all(tmp_path: Path, wish: str, kind: type[Exception]):
    store = MemoryStore()
    live(store, "a", tmp_path, 7)
    store.delete([layout.StepDir(7, "a", "7").key("model")])
    outcome = ranks.together(3, lambda line: restored(store, "b", line, wish=wish))
    assert [type(error) for error in outcome] == [kind] * 3


def test_a_rank_that_cannot_upload_leaves_nothing_committed_and_all_know(tmp_path: Path):
    store = FailingFor(write="rank-00001")
    verdicts = live(store, "a", tmp_path, 7)
    assert {verdict.problem for verdict in verdicts} == {
        "rank 1: cannot write steps/0000000007-a-7/rank-00001/own"
    }
    assert committed(store) == []


def test_b16_all_ranks_of_a_stale_attempt_are_told_so(tmp_path: Path):
    store = MemoryStore()

    def rank(line: peers.Peers) -> Any:
        begun, _ = restored(store, "a", line)
        assert begun is not None
        if line.rank == 0:
            live(store, "b", tmp_path, world=1)
        line.steps.agree([0])
        return save(store, begun.record, line, 7, tmp_path)

    verdicts = ranks.together(3, rank)
    assert [(verdict.committed, verdict.stale) for verdict in verdicts] == [(False, True)] * 3
    assert committed(store) == []


def test_a_rank_that_dies_in_the_middle_of_a_save_leaves_nothing_committed(tmp_path: Path):
    store = MemoryStore()

    def rank(line: peers.Peers) -> Any:
        begun, _ = restored(store, "a", line)
        assert begun is not None
        if line.rank == 1:
            return ranks.leave_saves(line)
        return save(store, begun.record, line, 7, tmp_path)

    first, _, third = ranks.together(3, rank)
    assert (first.committed, third.committed) == (False, False)
    assert committed(store) == []


def test_local_copies_of_saves_are_removed(tmp_path: Path):
    live(MemoryStore(), "a", tmp_path, 5, 7)
    assert list(tmp_path.iterdir()) == []


def test_surplus_goes_after_each_save(tmp_path: Path):
    store = MemoryStore()
    live(store, "a", tmp_path, 1, 2, 3, 4, 5)
    assert committed(store) == [3, 4, 5]


def test_b4_a_peer_that_freezes_after_the_commit_is_not_waited_for(tmp_path: Path):
    """Rank 1 has uploaded and hears no more of the verdict."""
    store = MemoryStore()

    def rank(line: peers.Peers) -> Any:
        begun, _ = restored(store, "a", line)
        assert begun is not None
        if line.rank == 1:
            line.saves.gather({"files": []})
            while not committed(store):
                CLOCK.sleep(0.01)
            return line.steps.agree([0])
        (tmp_path / "mine").mkdir()
        background = saver.Saver(line, saver.Place(store, begun.record, keep=3), CLOCK, LOG)
        directory = layout.StepDir(7, "a", "7")
        background.submit(saver.Job(directory, tmp_path / "mine", CLOCK.monotonic(), prune=True))
        line.steps.agree([0])
        asked = CLOCK.monotonic()
        background.finish_or_abandon(seconds=30, patience=0.2)
        waited = CLOCK.monotonic() - asked
        ranks.leave_saves(line)
        return waited

    assert ranks.together(2, rank)[0] < 2
    assert committed(store) == [7]


def test_a_save_that_can_still_be_committed_is_waited_for(tmp_path: Path):
    class Slow(MemoryStore):
        def put_file(self, key: str, source: Path) -> None:
            CLOCK.sleep(0.5)
            super().put_file(key, source)

    store = Slow()

    def rank(line: peers.Peers) -> None:
        begun, _ = restored(store, "a", line)
        assert begun is not None
        mine = tmp_path / str(line.rank)
        mine.mkdir()
        (mine / "own").touch()
        background = saver.Saver(line, saver.Place(store, begun.record, keep=3), CLOCK, LOG)
        background.submit(saver.Job(layout.StepDir(7, "a", "7"), mine, CLOCK.monotonic(), prune=True))
        background.finish_or_abandon(seconds=30, patience=0.2)

    assert ranks.together(1, rank) == [None]
    assert committed(store) == [7]


class Stuck(MemoryStore):
    """A store on which the files of one step hang until they are let go."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self._step = f"{step:010d}"
        self.reached, self.let_go = threading.Event(), threading.Event()

    def put_file(self, key: str, source: Path) -> None:
        if self._step in key:
            self.reached.set()
            self.let_go.wait(20)
        super().put_file(key, source)


def test_an_upload_that_is_abandoned_makes_way_for_the_newest_state_on_every_rank(tmp_path: Path):
    """And what is stored of it later is no checkpoint."""
    store = Stuck(7)

    def rank(line: peers.Peers) -> Any:
        begun, _ = restored(store, "a", line)
        assert begun is not None
        background = saver.Saver(line, saver.Place(store, begun.record, keep=3), CLOCK, LOG)
        verdicts = []
        for step in (7, 9):
            mine = tmp_path / f"{step}-{line.rank}"
            mine.mkdir()
            for name in ("a", "b"):
                (mine / name).write_text(name)
            directory = layout.StepDir(step, "a", f"{step:x}")
            background.submit(saver.Job(directory, mine, CLOCK.monotonic(), prune=False, stop=step == 9))
            if step == 7:
                assert store.reached.wait(10)
                background.abandon()
            verdicts.append(background.drain())
        return verdicts

    for first, second in ranks.together(2, rank):
        assert first.problem.startswith("rank 0: given up for a newer state")
        assert (second.step, second.committed) == (9, True)
    store.let_go.set()
    assert committed(store) == [9]


def test_what_a_save_cost_is_there_for_the_next_life_and_so_is_that_it_was_announced(tmp_path: Path):
    store = MemoryStore()

    def rank(line: peers.Peers) -> None:
        begun, _ = restored(store, "a", line)
        assert begun is not None
        for step, stop in ((7, False), (9, True)):
            mine = tmp_path / f"{step}-{line.rank}"
            mine.mkdir()
            (mine / "own").touch()
            background = saver.Saver(line, saver.Place(store, begun.record, keep=3), CLOCK, LOG)
            began = CLOCK.monotonic() - 2.0
            directory = layout.StepDir(step, "a", f"{step:x}")
            blocked = 0.5 + line.rank
            background.submit(saver.Job(directory, mine, began, prune=False, blocked=blocked, stop=stop))
            background.drain()

    assert ranks.together(2, rank) == [None, None]
    found, _ = restored(store, "b", peers.ALONE, resizable=True)
    assert found is not None
    history = found.history
    assert (history.interruptions, history.announced, history.blocked) == (1, 1, 1.5)
    assert history.whole is not None
    assert 2.0 <= history.whole < 5.0


def test_an_interruption_after_which_an_older_save_is_gone_on_from_was_not_announced(tmp_path: Path):
    store = MemoryStore()
    live(store, "a", tmp_path, 7, world=1)
    found, _ = restored(store, "b", peers.ALONE)
    assert found is not None
    assert (found.history.interruptions, found.history.announced) == (1, 0)
