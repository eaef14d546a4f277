"""What is compared between a checkpoint and the run that goes on from it."""

import sys

import pytest

from spottrain import errors
from spottrain.checkpoint import manifest
from spottrain.train import circumstances


def commit(*names: str, world: int) -> manifest.Commit:
    files = tuple(manifest.File(name, 1, "") for name in names)
    return manifest.Commit(7, manifest.Writer("a", "0", 1), files, world_size=world)


def test_what_is_known_of_one_side_alone_is_no_change():
    saved = {"python": "3.11.2", "torch": "2.8.0", "gpu": "NVIDIA A100", "numpy": "2.4.6"}
    found = {"python": "3.11.2", "torch": "2.9.1", "gpu": "NVIDIA L4", "other": "1"}
    names = circumstances.changes(saved, found)
    assert names == ["gpu", "torch"]
    assert circumstances.described(names, saved) == "gpu NVIDIA A100, torch 2.8.0"


def test_pythons_version_is_always_known():
    assert circumstances.here()["python"] == ".".join(map(str, sys.version_info[:3]))


@pytest.mark.parametrize(
    "saved",
    [commit("model", "rank-00001/data", world=2), commit("model", world=3)],
    ids=["the same number of ranks", "rank 0 alone had something"],
)
def test_what_each_rank_finds_again_is_loaded(saved: manifest.Commit):
    circumstances.refuse_other_world(saved, 2)


def test_a_refusal_names_both_numbers_and_every_way_out():
    with pytest.raises(errors.OtherWorld) as refused:
        circumstances.refuse_other_world(commit("model", "rank-00001/data", world=2), 4)
    said = str(refused.value)
    for words in (
        "saved by 2 ranks",
        "now there are 4: run with 2",
        "SPOTTRAIN_ON_RESIZE=Continue",
        "restore: Fresh",
    ):
        assert words in said
