"""Names that results are found by: they must never change."""

import math

import pytest

from spottrain import errors
from spottrain.batch import layout
from spottrain.batch.layout import Identity


def test_a_batch_is_named_by_its_model_and_its_parameters_in_whatever_order():
    one = Identity("shout@1", {"beams": 5, "mark": {"a": 1, "b": [2.5, None]}})
    assert one.hash == Identity("shout@1", {"mark": {"b": [2.5, None], "a": 1}, "beams": 5}).hash
    others = [Identity("shout@2", one.parameters), Identity("shout@1", {"beams": 5}), Identity("shout@1")]
    assert len({one.hash, *(other.hash for other in others)}) == 4


def test_hash_key_and_shard_are_what_they_were():
    """Another hash would orphan what lies in people's stores."""
    one = Identity("shout@1", {"mark": "!"})
    assert one.hash == "b6d8420f5eb478ef"
    assert one.key("a") == "7a0d6305796f074735d47a87163b31b2"
    assert [layout.shard_of(name, 50) for name in ("a", "b", "ä", "\ud800")] == [0, 46, 32, 22]


def test_inputs_are_dealt_out_evenly():
    counts = [0] * 10
    for number in range(10_000):
        counts[layout.shard_of(f"row-{number}", 10)] += 1
    assert min(counts) > 900
    assert max(counts) < 1100


@pytest.mark.parametrize("value", [math.nan, {1, 2}, object()])
def test_parameters_that_are_not_json_are_refused(value: object):
    with pytest.raises(errors.ConfigError, match="parameters must be JSON, since a hash of them names"):
        Identity("shout@1", {"x": value})


def test_a_model_without_a_name_is_refused():
    with pytest.raises(errors.ConfigError, match="say which model computes the results"):
        Identity("")


def test_a_description_comes_back_as_it_went():
    one = layout.Description(Identity("shout@1", {"mark": "!"}), 50)
    assert layout.decode(one.encode(), one.key) == one
    assert layout.parse_description_key(one.key) == one.identity.hash


@pytest.mark.parametrize("data", [b"", b"{}", b'{"format": 1, "model": "m"}', b"[]"])
def test_a_damaged_description_is_named(data: bytes):
    with pytest.raises(errors.CheckpointError, match=r"batches/x/batch\.json cannot be read"):
        layout.decode(data, "batches/x/batch.json")


def test_a_description_of_a_later_version_is_refused():
    with pytest.raises(errors.NewerFormat, match="has format 2"):
        layout.decode(b'{"format": 2}', "batches/x/batch.json")


@pytest.mark.parametrize(
    "key", ["batches/x/00000/steps/1", "batches/batch.json", "x/batch.json", "batches/x/y/batch.json"]
)
def test_other_keys_are_no_descriptions(key: str):
    assert layout.parse_description_key(key) is None
