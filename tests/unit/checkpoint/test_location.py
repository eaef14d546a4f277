import subprocess
import sys
from pathlib import Path

import pytest

from spottrain import errors
from spottrain.checkpoint import location


def opened(uri: str) -> str:
    return location.open_store(location.Location(uri, endpoint="http://127.0.0.1:9")).uri


def test_uris_this_version_knows():
    assert opened("s3://bucket/team/run/") == "s3://bucket/team/run"
    assert opened("s3://bucket") == "s3://bucket"
    assert opened("gs://bucket/team/run/") == "gs://bucket/team/run"
    assert opened("gs://bucket") == "gs://bucket"
    assert opened("file:///shared/run%201") == "file:///shared/run%201"
    assert opened("/shared/run") == Path("/shared/run").as_uri()


@pytest.mark.parametrize(
    ("uri", "why"),
    [
        ("s3:///run", "the bucket is missing: write s3://bucket/prefix"),
        ("gs:///run", "the bucket is missing: write gs://bucket/prefix"),
        ("az:///run", "the container is missing: write az://container/prefix"),
        ("file://shared/run", "write file:///directory, with three slashes"),
        ("run", "is no checkpoint URI: write s3://bucket/prefix, gs://bucket/prefix, az://"),
        ("", "is no checkpoint URI"),
        ("http://bucket/run", "is no checkpoint URI"),
    ],
)
def test_other_uris_are_refused_with_what_to_write(uri: str, why: str):
    with pytest.raises(errors.ConfigError, match=why):
        opened(uri)


def test_importing_the_package_loads_no_library_of_a_store_and_not_the_operator():
    program = (
        "import sys, spottrain; spottrain.session; "
        "names = ('boto3', 'google.cloud.storage', 'azure.storage', 'torch', 'numpy', 'kubernetes', 'kopf'); "
        "print([m for m in (*names, 'aiohttp') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
