from collections.abc import Iterator

import pytest

from spottrain.checkpoint import location
from tests.cli import shelf
from tests.contract.fixtures import aws_keys, bucket, proxy, s3_server

__all__ = ["aws_keys", "bucket", "place", "proxy", "s3_server"]


@pytest.fixture(params=["file", "s3"])
def place(request: pytest.FixtureRequest) -> Iterator[shelf.Shelf]:
    """An empty place for checkpoints, in a directory and on a real S3 server."""
    if request.param == "file":
        tmp_path = request.getfixturevalue("tmp_path")
        yield shelf.Shelf(location.Location((tmp_path / "ck").as_uri()), (tmp_path / "other").as_uri())
        return
    server, bucket_name = request.getfixturevalue("s3_server"), request.getfixturevalue("bucket")
    where = location.Location(f"s3://{bucket_name}/tr", server.endpoint)
    yield shelf.Shelf(where, f"s3://{bucket_name}/other")
