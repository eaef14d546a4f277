"""The policy benchmark: its formats, its simulator, and its bound."""

import io
import itertools
import json
import math
import random
import tarfile
from pathlib import Path

import pytest

from bench.policy import __main__ as program
from bench.policy import compare, omniscient, replay, rules, traces
from bench.policy.replay import Task
from bench.policy.traces import Trace
from spottrain.policy.deadline import Moment, Place
from spottrain.policy.induction import Terms

TERMS = Terms(start=1.2, ratio=3.0)
Y, N = True, False


def window(data: list[int], start: int) -> str:
    metadata = {"gap_seconds": 600, "start_time": start, "end_time": start + len(data)}
    return json.dumps({"original_trace": "x/zone-a.json", "metadata": metadata, "data": data})


def series(data: list[int], gap: int = 600) -> str:
    return json.dumps({"metadata": {"gap_seconds": gap}, "data": data})


def test_in_public_series_one_means_that_there_was_no_capacity(tmp_path: Path):
    (tmp_path / "zone-b_h100_16.json").write_text(series([0, 1, 1]))
    assert traces.read(tmp_path) == [Trace("h100", "zone-b_h100_16", (Y, N, N))]


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("a.json", "aws2022"),
        ("h100/a.json", "h100"),
        ("aws2022/b_h100_16.json", "h100"),
        ("aws2023/a.json", "aws2023"),
    ],
)
def test_a_series_belongs_to_the_set_that_it_or_its_folder_is_named_after(
    tmp_path: Path, name: str, group: str
):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(series([0]))
    assert [one.group for one in traces.read(tmp_path)] == [group]


def test_windows_of_one_series_are_put_together_again_from_an_archive(tmp_path: Path):
    with tarfile.open(tmp_path / "real.tar.gz", "w:gz") as archive:
        for name, text in {
            "a/2.json": window([1, 0], 4),
            "a/1.json": window([0, 1, 1], 2),
            "a/._1.json": "?",
        }.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    assert traces.read(tmp_path) == [Trace("aws2022", "zone-a", (Y, N, N, Y))]


def test_of_windows_with_a_gap_between_them_the_longest_stretch_is_taken(tmp_path: Path):
    (tmp_path / "1.json").write_text(window([0], 0))
    (tmp_path / "2.json").write_text(window([1, 1], 5))
    assert traces.read(tmp_path)[0].there == (N, N)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "no traces; name a folder"),
        ({"a.json": series([0], gap=60)}, "a look every 60 s"),
        ({"a.json": "{}"}, "lacks metadata.gap_seconds"),
        ({"a.json": window([0], 3), "b.json": window([1], 3)}, "otherwise of tick 3"),
    ],
)
def test_a_folder_that_cannot_be_replayed_is_refused_with_what_to_do(
    tmp_path: Path, files: dict[str, str], words: str
):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(traces.TraceError, match=words):
        traces.read(tmp_path)


@pytest.mark.parametrize("there", [(Y, Y, N), (N, Y), (N,), (Y,)])
def test_our_own_format_gives_back_what_was_written(tmp_path: Path, there: tuple[bool, ...]):
    (tmp_path / "set.runs").write_text(traces.write([Trace("set", "pool", there)]))
    assert traces.read(tmp_path) == [Trace("set", "pool", there)]


def test_the_traces_that_are_shipped_are_whole():
    shipped = traces.read(traces.SHIPPED)
    assert {
        group: len(list(found)) for group, found in itertools.groupby(shipped, lambda one: one.group)
    } == {
        "aws2022": 8,
        "h100": 7,
    }
    assert {len(one.there) for one in shipped} == {1764, 2114}


def test_a_start_is_paid_for_and_brings_no_progress_and_the_end_is_not_rounded():
    """3 ticks of work and a start of 1.2 on on-demand at 3: 4.2 ticks."""
    found = replay.replay(replay.Seen([N] * 6), 0, Task(3, 6, TERMS), rules.on_demand)
    assert (found.cost, found.took) == pytest.approx((12.6, 4.2))
    assert (found.idle, found.lost) == (0, 0)


def test_spot_that_is_taken_away_leaves_the_job_idle_and_the_next_start_is_paid_again():
    """Two ticks of spot (.8 of work), one idle, then 1.2 of a start and 1.2 of work."""
    found = replay.replay(replay.Seen([Y, Y, N, Y, Y, Y, Y]), 0, Task(2, 90, TERMS), rules.Wait(TERMS))
    assert (found.cost, found.took) == pytest.approx((4.4, 5.4))
    assert (found.idle, found.lost) == (1, 1)


def test_a_policy_that_takes_spot_where_there_is_none_is_found_out():
    def greedy(_tick: int, _moment: Moment) -> Place:
        return Place.SPOT

    with pytest.raises(replay.ReplayError, match="tick 0"):
        replay.replay(replay.Seen([N]), 0, Task(1, 9, TERMS), greedy)


def best_by_trying(there: list[bool], task: Task) -> float:
    """Every sequence of places that ends in time."""
    costs = [math.inf]
    for places in itertools.product(Place, repeat=len(there)):
        if any(place is Place.SPOT and not spot for place, spot in zip(places, there, strict=True)):
            continue

        def follow(tick: int, _moment: Moment, places: tuple[Place, ...] = places) -> Place:
            return places[tick]

        try:
            found = replay.replay(replay.Seen(there), 0, task, follow)
        except replay.ReplayError:
            continue
        if found.took <= task.left + 1e-9:
            costs.append(found.cost)
    return min(costs)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("start", [0.3, 1.2, 2.0])
def test_the_omniscient_costs_what_the_best_of_all_sequences_costs(seed: int, start: float):
    draw = random.Random(seed)
    there = [draw.random() < 0.6 for _ in range(8)]
    task = Task(draw.choice([2, 3, 4]), 8, Terms(start, 3.0))
    assert omniscient.cost(there, 0, task) == pytest.approx(best_by_trying(there, task))


def test_a_deadline_that_nothing_meets_has_no_bound():
    assert omniscient.cost([N] * 4, 0, Task(3, 4, Terms(1.2, 3.0))) == math.inf


def test_no_rule_costs_less_than_the_omniscient_or_more_than_on_demand_alone():
    """One start in each setting of one pool: a small part of the benchmark's table."""
    pool = next(one for one in traces.read(traces.SHIPPED) if one.pool == "us-east4-a_h100_16")
    runs = compare.compare([compare.Pool(pool)], 1)
    assert len(runs) == 6
    assert all(run.above(name) > -1e-6 for run in runs for name in compare.RULES)
    assert all(run.costs["ours"] < run.costs["on-demand only"] for run in runs)


def test_only_what_was_seen_before_is_learnt_from():
    """Two pools that are alike until the moment of the plan have the same plan."""
    past = [Y, Y, N, Y] * 60
    pools = [compare.Pool(Trace("s", "p", (*past, *future))) for future in ((Y,) * 500, (N,) * 500)]
    first, second = (pool.plan(len(past), TERMS) for pool in pools)
    assert first == second


def test_a_folder_without_traces_ends_the_benchmark_with_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert program.main(["--traces", str(tmp_path)]) == 1
    (tmp_path / "zone.json").write_text(series([0] * 300))
    assert program.main(["--traces", str(tmp_path)]) == 1
    assert [line.partition("; ")[2] for line in capsys.readouterr().err.splitlines()] == [
        "name a folder with .json, .tar.gz or .runs files of capacity",
        "name a folder with longer ones",
    ]
