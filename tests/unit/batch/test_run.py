"""A batch in this process, on a directory: what it takes and what it refuses."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from spottrain import batch, errors
from spottrain.checkpoint import files, location, store
from spottrain.train import patience

ROWS = [{"id": name, "text": f"text {name}"} for name in "abc"]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPOTTRAIN_CHECKPOINT_URI", (tmp_path / "out").as_uri())
    return tmp_path / "out"


def session(**wishes: Any) -> batch.Batch:
    return batch.session(model="m@1", **wishes)


def compute(rows: Iterable[Any], only: str = "") -> None:
    """Give each row, or only one, its result."""
    with session() as run:
        for row in run.todo(rows):
            if only in {"", row["id"]}:
                run.write(row, row.get("text", "") + "!")


def results(place: Path) -> list[dict[str, Any]]:
    return list(batch.results(place.as_uri(), model="m@1"))


def test_outputs_errors_and_rejected_inputs_each_count_as_done(place: Path):
    with session() as run:
        first, second, third = run.todo(ROWS)
        run.write(first, 1)
        run.fail(second, ValueError("no"))
        run.skip(third)
    assert results(place) == [{"id": "a", "output": 1}, {"id": "b", "error": "ValueError: no"}]
    with session() as run:
        assert list(run.todo(ROWS)) == []


def test_a_text_may_say_what_went_wrong(place: Path):
    with session() as run:
        for row in run.todo(ROWS[:1]):
            run.fail(row, "too long")
    assert results(place) == [{"id": "a", "error": "too long"}]


def test_a_batch_of_nothing_is_done(place: Path):
    with session() as run:
        assert list(run.todo([])) == []
    assert results(place) == []


def test_rows_that_are_no_mappings_have_an_id_too(place: Path):
    with session(id_of=str) as run:
        for name in run.todo([Path("x/1.wav"), Path("x/2.wav")]):
            run.write(name, name.stem)
    assert results(place) == [{"id": "x/1.wav", "output": "1"}, {"id": "x/2.wav", "output": "2"}]


def test_an_id_may_be_a_number():
    with session() as run:
        assert list(run.todo([{"id": 7}]))
        run.write({"id": 7}, None)


def test_several_lists_of_inputs_are_one_batch(place: Path):
    with session() as run:
        for rows in (ROWS[:2], ROWS[2:]):
            for row in run.todo(rows):
                run.write(row, row["text"])
    assert [one["id"] for one in results(place)] == ["a", "b", "c"]


def test_the_key_of_an_input_is_the_same_in_every_life_and_another_for_another_model(place: Path):
    with session() as run:
        mine = run.key(ROWS[0])
    with session() as run:
        assert run.key({"id": "a", "text": "changed"}) == mine == batch.Identity("m@1").key("a")
        assert run.key(ROWS[1]) != mine
    assert batch.Identity("m@2").key("a") != mine


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([{"id": "a"}, {"id": "a"}], "two inputs have the id 'a': an id must name one input"),
        ([{"id": 1}, {"id": "1"}], "two inputs have the id '1'"),
        ([{"name": "a"}], r"no id in {'name': 'a'}: give each input an \"id\", or say where it is"),
        ([5], r"no id in 5: .*session\(id_of=…\)"),
        ([{"id": ""}], "an id must be text or a whole number, not ''"),
        ([{"id": None}], "an id must be text or a whole number, not None"),
        ([{"id": True}], "an id must be text or a whole number, not True"),
        ([{"id": 1.5}], r"an id must be text or a whole number, not 1\.5"),
    ],
)
def test_inputs_without_an_id_of_their_own_are_refused(rows: list[Any], sentence: str):
    with pytest.raises(errors.BatchError, match=sentence):
        compute(rows)


@pytest.mark.parametrize("output", [{1, 2}, math.inf, b"bytes"])
def test_an_output_that_is_not_json_is_refused_and_can_still_be_recorded_as_an_error(
    output: object, place: Path
):
    with session() as run:
        for row in run.todo(ROWS[:1]):
            with pytest.raises(errors.BatchError, match="the output for 'a' is not JSON") as caught:
                run.write(row, output)
            run.fail(row, caught.value)
    assert results(place)[0]["error"].startswith("BatchError: the output for 'a' is not JSON")


def test_a_second_result_is_refused():
    with session() as run:
        for row in run.todo(ROWS[:1]):
            run.write(row, 1)
            with pytest.raises(
                errors.BatchError, match="'a' has a result already, or did not come out of todo"
            ):
                run.write(row, 2)


def test_inputs_left_without_a_result_are_an_error_and_the_others_stay(place: Path):
    sentence = r"2 inputs .* have no result \(b, c\): give each one to write"
    with pytest.raises(errors.BatchError, match=sentence):
        compute(ROWS, only="a")
    assert results(place) == [{"id": "a", "output": "text a!"}]


def test_an_exception_of_the_programs_own_stays_what_it_is_and_what_was_written_too(place: Path):
    with pytest.raises(TypeError, match="unsupported operand"):
        compute([ROWS[0], {"id": "b", "text": None}])
    assert results(place) == [{"id": "a", "output": "text a!"}]


def test_fresh_computes_all_anew(place: Path, monkeypatch: pytest.MonkeyPatch):
    for wish, output in (("Latest", 1), ("Fresh", 2)):
        monkeypatch.setenv("SPOTTRAIN_RESTORE", wish)
        with session() as run:
            for row in run.todo(ROWS):
                run.write(row, output)
        assert [one["output"] for one in results(place)] == [output] * 3


def test_a_step_cannot_be_asked_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SPOTTRAIN_RESTORE", "Step:7")
    with pytest.raises(errors.ConfigError, match="a batch knows no restore: Step:7; say Latest"), session():
        pass


@pytest.mark.parametrize("wishes", [{"every": 0}, {"seconds": -1}, {"seconds": math.nan}, {"shards": 0}])
def test_wishes_that_make_no_sense_are_refused(wishes: dict[str, float]):
    with pytest.raises(errors.ConfigError, match="every and shards must be at least 1"):
        session(**wishes)


def test_parts_are_committed_by_number(place: Path):
    with session(every=2) as run:
        todo = run.todo(ROWS)
        for _ in range(2):
            run.write(next(todo), 1)
        assert len(results(place)) == 2
        run.write(next(todo), 1)
        assert len(results(place)) == 2
    assert len(results(place)) == 3


def test_the_first_worker_says_how_many_shards_there_are(place: Path):
    with session(shards=4) as run:
        for row in run.todo(ROWS[:1]):
            run.write(row, 1)
    with session(shards=9) as run:
        for row in run.todo(ROWS):
            run.write(row, 1)
    assert len(results(place)) == 3
    keys = {entry.key.split("/")[2] for entry in files.FilesStore(place).list("batches/")}
    assert keys == {"batch.json", "00000", "00001", "00002", "00003"}


@pytest.mark.parametrize("part", [0, 1, 2])
@pytest.mark.parametrize("file", ["outputs.jsonl", "ids.jsonl"])
def test_a_damaged_part_costs_its_own_inputs_whichever_it_is(place: Path, part: int, file: str):
    with session(every=1) as run:
        for row in run.todo(ROWS):
            run.write(row, 1)
    damaged = sorted(place.rglob(file))[part]
    data = damaged.read_bytes()
    damaged.write_bytes(data[:-2] if file == "outputs.jsonl" else data.replace(b'"', b"'"))
    with session() as run:
        (again,) = run.todo(ROWS)
        run.write(again, 2)
    assert again == ROWS[part]
    assert [one["output"] for one in sorted(results(place), key=lambda one: str(one["id"]))] == [
        2 if row is again else 1 for row in ROWS
    ]


def test_a_part_that_can_be_read_again_makes_no_twins(place: Path):
    with session() as run:
        for row in run.todo(ROWS):
            run.write(row, 1)
    (ids,) = place.rglob("ids.jsonl")
    data = ids.read_bytes()
    ids.write_bytes(data.replace(b'"', b"'"))
    with session() as run:
        for row in run.todo(ROWS):
            run.write(row, 2)
    ids.write_bytes(data)
    assert [one["id"] for one in results(place)] == ["a", "b", "c"]


def test_when_every_part_is_damaged_all_is_computed_anew(place: Path):
    for output in (1, 2):
        with session() as run:
            for row in run.todo(ROWS):
                run.write(row, output)
        for commit in place.rglob("COMMIT.json"):
            commit.write_text("{}")
        if output == 1:
            assert results(place) == []


def test_a_straggler_of_an_older_attempt_is_told_so(
    place: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "said").touch()
    told = {"JOB": "b", "JOB_UID": "u", "TERMINATION_LOG": str(tmp_path / "said")}
    for attempt in ("2", "1"):
        for name, value in {**told, "ATTEMPT": attempt, "ATTEMPT_ID": f"0{attempt}"}.items():
            monkeypatch.setenv(f"SPOTTRAIN_{name}", value)
        if attempt == "2":
            with session():
                pass
    with pytest.raises(errors.StaleAttempt, match=r"attempt 2 .* has taken over"), session():
        pass
    assert '"state": "stale"' in (tmp_path / "said").read_text()


def test_results_of_a_model_that_never_ran_are_an_error(place: Path):
    place.mkdir()
    with pytest.raises(errors.BatchError, match="holds no results of m@1 with these parameters"):
        batch.results(place.as_uri(), model="m@1")


def test_a_part_whose_outputs_are_damaged_is_named_with_what_to_do(place: Path):
    with session() as run:
        for row in run.todo(ROWS):
            run.write(row, 1)
    (file,) = place.rglob("outputs.jsonl")
    file.write_bytes(file.read_bytes().replace(b"1", b"7"))
    with pytest.raises(
        errors.CheckpointError, match=r"another checksum .*; remove .*COMMIT\.json and run .* 3 inputs"
    ):
        results(place)
    (commit,) = place.rglob("COMMIT.json")
    commit.unlink()
    with session() as run:
        for row in run.todo(ROWS):
            run.write(row, 1)
    assert [one["output"] for one in results(place)] == [1] * 3


class ShutAtFirst(files.FilesStore):
    """Refuses the first connections."""

    refused = 0

    def list(self, prefix: str) -> list[store.Entry]:
        if self.refused < 3:
            type(self).refused += 1
            raise errors.StoreUnavailable("connection refused")
        return super().list(prefix)


@pytest.mark.parametrize("in_cluster", [True, False])
def test_a_store_that_is_away_when_a_worker_begins(
    place: Path, monkeypatch: pytest.MonkeyPatch, in_cluster: bool
):
    """A pod waits for it: its start is no failure for that. Elsewhere somebody sees it at once."""
    monkeypatch.setattr(ShutAtFirst, "refused", 0)
    monkeypatch.setattr(location, "open_store", lambda _: ShutAtFirst(place))
    monkeypatch.setattr(patience, "PAUSE", 0.01)
    if not in_cluster:
        with pytest.raises(errors.StoreUnavailable):
            compute(ROWS)
        return
    monkeypatch.setenv("SPOTTRAIN_JOB", "team/embed")
    compute(ROWS)
    monkeypatch.delenv("SPOTTRAIN_JOB")
    assert ShutAtFirst.refused == 3
    assert len(results(place)) == 3
