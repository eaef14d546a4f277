"""The agent as the process that it is in a cluster."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab import clock, fakes
from spottrain.agent import main
from tests.agent import plane
from tests.agent.conftest import soon

ROOT = Path(__file__).parents[2]
LIMIT_MIB = 45


@contextmanager
def running(api: plane.Plane, credentials: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    settings = {
        "SPOTTRAIN_NODE_NAME": plane.NODE,
        "SPOTTRAIN_API_URL": api.url,
        "SPOTTRAIN_API_CREDENTIALS": str(credentials),
        "SPOTTRAIN_AGENT_PORT": "0",
        **environment,
    }
    command = [sys.executable, "-c", "from spottrain.agent.main import main; main()"]
    with subprocess.Popen(command, env={**os.environ, **settings}, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.kill()


def resident_mib(process: subprocess.Popen[bytes]) -> float:
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return int(next(one for one in lines if one.startswith("VmRSS")).split()[1]) / 1024


def test_it_is_small_hears_a_notice_and_ends_with_a_signal(api: plane.Plane, credentials: Path):
    """45 MiB is what it may take on each node; a signal ends it within two seconds, exit code 0."""
    fake = fakes.Google()
    with fakes.running(fake):
        flags = {"SPOTTRAIN_METADATA_URL": fake.url, "SPOTTRAIN_PROVIDER": "gcp"}
        with running(api, credentials, **flags) as process:
            clock.wait_for("the condition", lambda: api.condition().get("status") == "True", seconds=20)
            fake.give_notice(soon(30))
            clock.wait_for("the mark", api.mark, seconds=5)
            resident = resident_mib(process)
            process.terminate()
            assert process.wait(3) == 0

    assert resident <= LIMIT_MIB


def test_it_reads_its_token_anew(api: plane.Plane, credentials: Path):
    """A pod's token is replaced every hour, and the old one is refused some time later."""
    fake = fakes.Alibaba()
    with fakes.running(fake):
        flags = {"SPOTTRAIN_METADATA_URL": fake.url, "SPOTTRAIN_PROVIDER": "alibaba"}
        with running(api, credentials, **flags):
            clock.wait_for("the condition", lambda: api.condition().get("status") == "True", seconds=20)
            api.token = "t2"
            (credentials / "token").write_text("t2\n")
            fake.give_notice(soon(30))
            clock.wait_for("the mark", api.mark, seconds=5)


def test_a_cloud_that_is_found_late_is_heard_by_the_next_process(api: plane.Plane, credentials: Path):
    """A Node may get its providerID after the agent has started; no cloud is no reason to restart."""
    nobody = {"SPOTTRAIN_METADATA_URL": "http://127.0.0.1:1"}
    with running(api, credentials, **nobody) as process:
        clock.wait_for("no cloud", lambda: api.condition().get("reason") == "NoNotices", seconds=20)
        assert process.poll() is None
        assert api.node is not None
        api.node["spec"]["providerID"] = "aws:///eu-west-1a/i-0123456789abcdef0"
        assert process.wait(main.LOOK_AGAIN + 10) == 0

    with running(api, credentials, **nobody):
        clock.wait_for("its cloud", lambda: api.condition().get("reason") == "Starting", seconds=20)


def test_it_names_a_setting_that_it_cannot_use():
    command = [sys.executable, "-c", "from spottrain.agent.main import main; main()"]
    flags = ["--node-name=n1", "--api-url=http://127.0.0.1:1", "--provider=ibm"]
    done = subprocess.run([*command, *flags], cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "--provider ibm is none of auto, aws, gcp, azure, alibaba, none" in done.stderr
