"""S3: large objects come in parts, several at a time."""

import hashlib
import random
from pathlib import Path

import pytest

from spottrain import errors
from spottrain.checkpoint import s3
from spottrain.checkpoint.store import Limits
from tests.contract import faults, gateway

MANY = 22
"""Parts: more than there are at a time."""


@pytest.fixture
def sent(s3_server: gateway.Gateway, bucket: str, tmp_path: Path) -> bytes:
    """An object `model` of that many parts, the last a short one."""
    data = random.Random(1).randbytes(8 << 20) * (MANY - 1) + b"end"
    (tmp_path / "sent").write_bytes(data)
    s3.S3Store(bucket, "tr", endpoint=s3_server.endpoint).put_file("model", tmp_path / "sent")
    return data


def test_more_parts_than_connections_come_in_their_order(
    s3_server: gateway.Gateway, bucket: str, sent: bytes, tmp_path: Path
):
    store = s3.S3Store(bucket, "tr", endpoint=s3_server.endpoint)
    assert store.get_file("model", tmp_path / "got") == hashlib.sha256(sent).hexdigest()
    assert (tmp_path / "got").read_bytes() == sent


def test_a_part_that_breaks_off_is_asked_for_again(
    proxy: faults.Proxy, bucket: str, sent: bytes, tmp_path: Path
):
    broken = iter([faults.BreakOff()] * 2)
    proxy.rule = lambda request: next(broken, None) if request.method == "GET" else None
    store = s3.S3Store(bucket, "tr", endpoint=proxy.endpoint, limits=Limits(connect=2, read=5, tries=3))
    assert store.get_file("model", tmp_path / "got") == hashlib.sha256(sent).hexdigest()
    assert next(broken, None) is None


def test_a_store_whose_parts_always_break_off_is_unavailable(
    proxy: faults.Proxy, bucket: str, sent: bytes, tmp_path: Path
):
    proxy.rule = lambda request: faults.BreakOff() if request.method == "GET" else None
    store = s3.S3Store(bucket, "tr", endpoint=proxy.endpoint, limits=Limits(connect=2, read=5, tries=2))
    with pytest.raises(errors.StoreUnavailable, match="cannot read model"):
        store.get_file("model", tmp_path / "got")
