"""`spottrain plan`, as a process."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spottrain.policy import hazard, pools

JOB = """
apiVersion: spottrain.dev/v1alpha1
kind: SpotTrainingJob
metadata: {name: bert}
spec:
  workers: %d
  template: {spec: {containers: [{name: train, image: train}]}}
  checkpoint: {uri: s3://bucket/bert}
  prices: {spot: 1.10, onDemand: 3.67}
"""


def plan(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from spottrain.cli.main import main; main()", "plan", *arguments],
        check=False,
        capture_output=True,
        text=True,
        env=dict(os.environ),
    )


@pytest.fixture
def job(tmp_path: Path) -> Path:
    file = tmp_path / "job.yaml"
    file.write_text(JOB % 4)
    return file


def answer(*arguments: str) -> dict[str, Any]:
    done = plan(*arguments, "-o", "json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_it_says_time_and_money_of_all_three_ways(job: Path) -> None:
    found = answer(str(job), "--work", "24h", "--save", "20s", "--hazard", "5%")
    assert found["secondsBetweenReclaims"] == 5 * 3600
    assert found["saveFits"]
    assert found["warnings"] == []
    assert 0 < found["spot"]["cost"]["mean"] < found["onDemand"]["cost"]["mean"]
    assert found["spot"]["wallSeconds"]["low"] <= found["spot"]["wallSeconds"]["high"]
    text = plan(str(job), "--work", "24h", "--save", "20s", "--hazard", "5%").stdout
    assert "every 5h on average" in text
    assert [
        line.split()[0] for line in text.splitlines() if line.startswith(("spot  ", "mixed", "on-d"))
    ] == [
        "spot",
        "mixed",
        "on-demand",
    ]


def test_where_futures_are_not_done_the_means_are_at_least_so_much(job: Path) -> None:
    """Reclaimed every minute and a half, with starts of 5, it hardly gets on; on on-demand nodes it does."""
    given = [str(job), "--work", "10m", "--save", "20s", "--hazard", "1000%"]
    found = answer(*given)
    assert found["spot"]["done"] < 1
    assert [found[way]["atLeast"] for way in ("spot", "onDemand")] == [True, False]
    rows = {line.split("  ")[0]: line for line in plan(*given).stdout.splitlines()}
    assert rows["spot"].count("  >= ") == 3
    assert ">=" not in rows["on-demand"]


def test_a_deadline_needs_no_quotes(job: Path) -> None:
    job.write_text(job.read_text() + "  completeBy: 2026-12-24T08:00:00Z\n")
    assert answer(str(job), "--work", "24h", "--save", "20s", "--hazard", "5%")["warnings"] == []


def test_a_wrong_design_is_told_with_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(JOB % 32)
    found = answer(str(file), "--work", "24h", "--save", "5m", "--hazard", "0.05")
    first, second = found["warnings"][:2]
    assert first.startswith("it is interrupted every 37m30s on average and a save takes 5m: ")
    assert "Save faster" in first
    assert "28s of the notice can be used" in second


def test_what_the_operator_has_learnt_is_read_from_its_config_map(job: Path, tmp_path: Path) -> None:
    calm = hazard.Record().after(0.0, held=True).after(500.0, held=True)
    text = pools.encode({"spot/zone-a/g5": calm, "spot/zone-b/g5": hazard.Record()})
    learnt = tmp_path / "learnt.json"
    learnt.write_text(json.dumps({"kind": "ConfigMap", "data": {"pools.json": text}}))
    given = [str(job), "--work", "24h", "--learnt", str(learnt)]
    calmest = answer(*given, "--pool", "zone-a")
    unknown = answer(*given, "--pool", "zone-b")
    assert calmest["spot"]["reclaims"]["mean"] < unknown["spot"]["reclaims"]["mean"]
    nowhere = plan(*given, "--pool", "zone-x")
    assert nowhere.returncode == 1
    assert "has no such spot pool; those that are there: spot/zone-a/g5, spot/zone-b/g5" in nowhere.stderr


def test_the_pools_that_the_job_may_run_in_are_those_that_count(tmp_path: Path) -> None:
    """What it allows and nobody has met is a pool of which nothing is known; --pool names others."""
    calm = hazard.Record().after(0.0, held=True).after(500.0, held=True)
    learnt = tmp_path / "learnt.json"
    learnt.write_text(pools.encode({"spot/zone-a/g5": calm, "spot/zone-b/g5": hazard.Record()}))

    def reclaims(listed: str, *given: str) -> float:
        file = tmp_path / "job.yaml"
        file.write_text(JOB % 4 + f"  spot: {{pools: [{listed}]}}\n")
        found = answer(str(file), "--work", "24h", "--learnt", str(learnt), *given)
        return float(found["spot"]["reclaims"]["mean"])

    calmest = reclaims("{zone: zone-a}")
    unknown = reclaims("{zone: zone-b, weight: 9}")
    assert calmest == reclaims("", "--pool", "zone-a") < unknown
    assert reclaims("{zone: zone-x}") == unknown
    assert reclaims("{zone: zone-b}", "--pool", "zone-a") == calmest


def test_entries_of_which_nothing_is_learnt_are_named_as_they_may_be_misspelt(tmp_path: Path) -> None:
    calm = hazard.Record().after(0.0, held=True).after(500.0, held=True)
    learnt = tmp_path / "learnt.json"
    learnt.write_text(pools.encode({"spot/zone-a/g5": calm}))

    def told(listed: str) -> list[str]:
        file = tmp_path / "job.yaml"
        file.write_text(JOB % 4 + f"  spot: {{pools: [{listed}]}}\n")
        found = answer(str(file), "--work", "24h", "--learnt", str(learnt))["warnings"]
        return [one for one in found if "learnt" in one]

    sentence = (
        "nothing was ever learnt of spot/zone-x/g5, so the rates of public traces are taken: unless no "
        "job has run there yet, compare the names in spec.spot.pools with the nodes' labels"
    )
    assert told("{zone: zone-a}") == []
    assert told("{zone: zone-a}, {zone: zone-x, instanceType: g5}") == [sentence]


def test_the_work_left_and_the_save_are_those_that_a_run_has_told(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    told = "status: {checkpoint: {saveSeconds: 12}, progress: {step: 1000, total: 37000, perSecond: 1.0}}\n"
    file.write_text(JOB % 1 + told)
    found = answer(str(file), "--hazard", "0")
    assert found["saveSeconds"] == 12
    assert found["onDemand"]["wallSeconds"]["mean"] == pytest.approx(36000 + 300, rel=0.01)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "give --work"),
        (["--work", "24h", "--pool", "zone-a"], "--pool names what --learnt holds"),
        (["--work", "24h", "--learnt", "/nowhere"], "/nowhere: No such file"),
        (["--work", "soon"], "is not a duration"),
        (["--work", "1h", "--spot-price", "free"], "is not a price"),
        (["--work", "1h", "--hazard", "-1"], "is below 0"),
        (["--work", "1h", "--notice-share", "2"], "is more than all"),
    ],
    ids=str,
)
def test_what_is_missing_or_wrong_is_told_with_what_to_write(
    job: Path, arguments: list[str], says: str
) -> None:
    done = plan(str(job), *arguments)
    assert done.returncode in {1, 2}
    assert says in done.stderr
