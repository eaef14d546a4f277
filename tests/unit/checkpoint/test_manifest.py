import json

import pytest

from spottrain import errors
from spottrain.checkpoint import manifest
from spottrain.checkpoint.layout import StepDir
from spottrain.checkpoint.manifest import Commit, File, Writer

COMMIT = Commit(
    step=7,
    writer=Writer("aa", "0f", seq=3, attempt=2, job_uid="u", host="h", pid=1),
    files=(
        File("model.pt", 10, "ab"),
        File("rank-00001/rank.pt", 4, "cd"),
        File("rank-00002/rank.pt", 4, "ef"),
    ),
    world_size=3,
    versions={"python": "3.11.2"},
    time=1.5,
    stop=True,
    blocked=0.25,
    seconds=1.25,
)


def changed(**fields: object) -> bytes:
    return json.dumps({**json.loads(COMMIT.encode()), **fields}).encode()


def test_a_commit_reads_back_as_it_was_written():
    assert manifest.decode(COMMIT.encode(), COMMIT.directory) == COMMIT


def test_a_commit_in_another_directory_than_its_own_does_not_count():
    assert (
        manifest.decode(COMMIT.encode(), StepDir(7, "aa", "00"))
        == "its COMMIT.json belongs to 0000000007-aa-0f"
    )


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "cannot be read"),
        (b"{", "cannot be read"),
        (b"[]", "cannot be read"),
        (b"\xff\xfe", "cannot be read"),
        (changed(format=0), "has format 0, which never was"),
        (changed(format="2"), "has format 2, which never was"),
        (changed(files=None), "cannot be read"),
        (changed(writer={}), "cannot be read"),
        (changed(files=[{"name": "../../etc/passwd", "size": 1, "sha256": ""}]), "leaves the directory"),
        (changed(files=[{"name": "/etc/passwd", "size": 1, "sha256": ""}]), "leaves the directory"),
    ],
)
def test_a_damaged_commit_is_a_reason_not_an_exception(data: bytes, why: str):
    found = manifest.decode(data, COMMIT.directory)
    assert isinstance(found, str)
    assert why in found


def test_a_commit_of_a_later_version_is_refused_not_skipped():
    why = r"steps/0000000007-aa-0f/COMMIT\.json has format 2, .* reads up to 1: use the version that wrote it"
    with pytest.raises(errors.NewerFormat, match=why):
        manifest.decode(changed(format=2), COMMIT.directory)


def test_a_rank_needs_rank_zeros_files_and_its_own():
    assert [f.name for f in COMMIT.files_for(0)] == ["model.pt"]
    assert [f.name for f in COMMIT.files_for(1)] == ["model.pt", "rank-00001/rank.pt"]
    assert [f.name for f in COMMIT.files_for(7)] == ["model.pt"]


def test_damage_names_the_file():
    sizes = {"model.pt": 10, "rank-00001/rank.pt": 4, "rank-00002/rank.pt": 4, "extra": 1}
    assert manifest.damage(COMMIT, sizes) is None
    assert manifest.damage(COMMIT, {**sizes, "model.pt": 9}) == "model.pt has 9 bytes instead of 10"
    assert manifest.damage(COMMIT, {**sizes, "model.pt": 0}) == "model.pt has 0 bytes instead of 10"
    del sizes["rank-00002/rank.pt"]
    assert manifest.damage(COMMIT, sizes) == "rank-00002/rank.pt is missing"


def test_a_commit_of_an_older_writer_that_did_not_measure_reads_all_the_same():
    older = {k: v for k, v in json.loads(COMMIT.encode()).items() if k not in {"stop", "blocked", "seconds"}}
    found = manifest.decode(json.dumps(older).encode(), COMMIT.directory)
    assert isinstance(found, Commit)
    assert (found.stop, found.blocked, found.seconds) == (False, 0.0, 0.0)
