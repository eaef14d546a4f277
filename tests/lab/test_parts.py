"""Small parts: kubeconfig, processes, waiting, refusals, the command line."""

import base64
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from lab import (
    __main__,
    clock,
    controlplane,
    fleet,
    kubeconfig,
    kwok,
    packages,
    pki,
    preflight,
    process,
    shell,
)
from lab.errors import LabError
from lab.kwok import FakeNode

GIB = 1 << 30


@pytest.mark.parametrize(
    ("token", "user"),
    [
        ("", {"client-certificate-data": "Q0VSVA==", "client-key-data": "S0VZ"}),
        ("secret", {"token": "secret"}),
    ],
)
def test_kubeconfig_is_one_cluster_user_and_context_with_everything_inside(
    tmp_path: Path, token: str, user: dict[str, str]
) -> None:
    """It works wherever it is copied to."""
    for name in ("ca", "cert", "key"):
        (tmp_path / name).write_text(name.upper())
    path = kubeconfig.write(
        tmp_path / "made",
        lab="lab-x",
        server="https://10.0.0.1:6443",
        ca=tmp_path / "ca",
        user=token or pki.Pair(tmp_path / "key", tmp_path / "cert"),
    )
    document = yaml.safe_load(path.read_text())
    assert path.stat().st_mode & 0o777 == 0o600
    assert document["current-context"] == "lab-x"
    assert document["contexts"] == [{"name": "lab-x", "context": {"cluster": "lab-x", "user": "lab-x"}}]
    cluster_ = document["clusters"][0]["cluster"]
    assert cluster_ == {
        "server": "https://10.0.0.1:6443",
        "certificate-authority-data": base64.b64encode(b"CA").decode(),
    }
    assert document["users"] == [{"name": "lab-x", "user": user}]


def test_program_that_fails_is_reported_with_its_words() -> None:
    """The command, its exit code and the end of what it said."""
    with pytest.raises(LabError, match=r"sh -c echo why >&2; exit 3 exited 3: why"):
        shell.run("sh", "-c", "echo why >&2; exit 3")


def test_program_that_is_not_installed_is_named() -> None:
    """Not a traceback."""
    with pytest.raises(LabError, match="no-such-program is not installed"):
        shell.run("no-such-program")


def test_poll_ends_with_the_answer_or_with_none() -> None:
    """Never with an exception."""
    answers = iter([0, 0, 7])
    assert clock.poll(lambda: next(answers), seconds=5, every=0) == 7
    assert clock.poll(lambda: 0, seconds=0, every=0) is None


def test_waiting_in_vain_names_what_was_waited_for() -> None:
    """The message of a lab that does not come up."""
    with pytest.raises(LabError, match="the moon did not happen within 0 s"):
        clock.wait_for("the moon", lambda: None, seconds=0)


def spawn(tmp_path: Path, *argv: str) -> Path:
    """Start a program the way the lab does."""
    process.spawn(argv, log=tmp_path / "log", pid_file=tmp_path / "pid")
    return tmp_path / "pid"


def test_process_is_found_until_it_is_stopped(tmp_path: Path) -> None:
    """By its file alone."""
    pid_file = spawn(tmp_path, "sleep", "100")
    pid = process.find(pid_file)
    assert pid is not None
    process.stop(pid_file, grace=5)
    assert process.find(pid_file) is None
    assert process.start_time(pid) is None
    assert not pid_file.exists()


def test_process_that_ignores_the_request_to_end_is_killed(tmp_path: Path) -> None:
    """After its grace."""
    pid_file = spawn(tmp_path, "sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done")
    clock.wait_for("the trap", (tmp_path / "log").read_text, seconds=5, every=0.01)
    process.stop(pid_file, grace=0.2)
    assert process.find(pid_file) is None


def test_another_process_with_the_same_number_is_left_alone(tmp_path: Path) -> None:
    """A number can be given anew; the start time tells."""
    pid_file = tmp_path / "pid"
    pid_file.write_text(f"{os.getpid()} 1\n")
    assert process.find(pid_file) is None
    process.stop(pid_file, grace=0)
    assert process.start_time(os.getpid()) is not None


@pytest.mark.parametrize("text", ["", "12", "x y z"], ids=["empty", "half written", "garbage"])
def test_half_written_pid_file_counts_as_no_process(tmp_path: Path, text: str) -> None:
    """The lab may be killed while it writes."""
    (tmp_path / "pid").write_text(text)
    assert process.find(tmp_path / "pid") is None


def test_zombie_counts_as_gone(tmp_path: Path) -> None:
    """It holds nothing any more."""
    pid = os.posix_spawnp("sleep", ["sleep", "100"], dict(os.environ))
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert process.start_time(pid) is None
    os.waitpid(pid, 0)


def test_too_little_space_says_how_much_and_what_to_do() -> None:
    """One sentence."""
    with pytest.raises(
        LabError, match=r"/x has 3\.0 GiB free and the lab needs 15: make room, or set SPOTTRAIN_CACHE"
    ):
        preflight.require_space(Path("/x"), 3 * GIB, 15 * GIB)


def test_enough_space_is_fine() -> None:
    """Exactly what is needed will do."""
    preflight.require_space(Path("/x"), 15 * GIB, 15 * GIB)


def test_a_preferred_process_is_so_among_sessions_too(tmp_path: Path) -> None:
    pid = process.spawn(["sleep", "60"], log=tmp_path / "log", pid_file=tmp_path / "pid")
    try:
        process.prefer(pid, -5)
        assert os.getpriority(os.PRIO_PROCESS, pid) == -5
        group = Path(f"/proc/{pid}/autogroup")
        assert not group.exists() or group.read_text().endswith("nice -5\n")
    finally:
        process.stop(tmp_path / "pid", grace=0)


def test_user_other_than_root_is_told_to_use_sudo() -> None:
    """One sentence on stderr and exit code 1, from the command itself."""
    script = "import os, sys; from lab.__main__ import main; os.setuid(65534); sys.exit(main(['up']))"
    with pytest.raises(LabError, match=r"exited 1: lab: the lab makes namespaces and mounts: run it as root"):
        shell.run("python3", "-c", script, cwd=Path(__file__).parents[2])


def test_missing_go_is_told_where_to_get_it(tmp_path: Path) -> None:
    """With an empty PATH."""
    script = "from lab import build, errors\ntry: build.go_version()\nexcept errors.LabError as e: print(e)"
    said = shell.run(
        "/usr/bin/python3", "-c", script, cwd=Path(__file__).parents[2], env={"PATH": str(tmp_path)}
    )
    assert said == "Go is not installed: install Go 1.26 or newer from https://go.dev/dl\n"


def test_every_package_is_for_a_program_and_none_is_named_twice() -> None:
    """What apt is asked for."""
    assert sorted(set(packages.NEEDED.values())) == sorted(packages.NEEDED.values())


APT = """#!/bin/sh
# As apt-get is: the second one at a time fails. Installing makes the program that was missing.
for word; do case $word in update|install) doing=$word;; esac; done
mkdir "$HERE/lists" || { echo "Could not get lock" >&2; exit 100; }
echo "$doing" >> "$HERE/log"
sleep 0.3
[ "$doing" = update ] || install -m 755 /dev/null "$HERE/bin/wanted"
rmdir "$HERE/lists"
"""


def test_labs_that_start_side_by_side_on_a_fresh_machine_install_one_after_another(tmp_path: Path) -> None:
    """Two processes that miss the same program, and an apt-get that doesn't wait for another one."""
    (tmp_path / "bin").mkdir()
    apt = tmp_path / "bin" / "apt-get"
    apt.write_text(APT)
    apt.chmod(0o755)
    environment = {
        **os.environ,
        "HERE": str(tmp_path),
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "SPOTTRAIN_CACHE": str(tmp_path / "cache"),
    }
    line = [sys.executable, "-c", "from lab import packages; packages.install({'wanted': 'some-package'})"]
    root = Path(__file__).parents[2]
    both = [subprocess.Popen(line, cwd=root, env=environment) for _ in range(2)]
    assert [one.wait(timeout=60) for one in both] == [0, 0]
    assert (tmp_path / "log").read_text().split() == ["update", "install"]


def test_bad_node_on_the_command_line_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """And exit code 1."""
    assert __main__.main(["--name", "unit", "up", "--nodes", "x=free/zone"]) == 1
    assert capsys.readouterr().err == (
        "lab: node 'x=free/zone' must be written NAME=on-demand/ZONE or NAME=spot/ZONE\n"
    )


def test_bad_lab_name_on_the_command_line_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """Raised before anything is touched."""
    assert __main__.main(["--name", "No Such", "status"]) == 1
    assert capsys.readouterr().err.startswith("lab: name 'No Such' must be 1-20 characters")


def test_lab_that_never_was_is_down(capsys: pytest.CaptureFixture[str]) -> None:
    """Asking makes nothing."""
    assert __main__.main(["--name", "never-was", "status"]) == 0
    assert capsys.readouterr().out == "lab never-was is down\n"


def test_dns_service_has_the_address_that_pods_are_given() -> None:
    """And its only endpoint is the host."""
    service, endpoints = (document for _, document in controlplane.dns_objects("10.1.0.10", "10.2.0.1"))
    assert service["spec"]["clusterIP"] == "10.1.0.10"
    assert endpoints["endpoints"] == [{"addresses": ["10.2.0.1"], "conditions": {"ready": True}}]
    assert [port["name"] for port in service["spec"]["ports"]] == [
        port["name"] for port in endpoints["ports"]
    ]


def test_fake_node_is_marked_for_kwok_and_offers_what_was_asked_for() -> None:
    """Labels and capacity on top of the usual ones."""
    fake = FakeNode("k-1", labels={"zone": "a"}, capacity={"nvidia.com/gpu": "8"})
    assert kwok.document(fake)["metadata"]["annotations"] == {"kwok.x-k8s.io/node": "fake"}
    assert kwok.document(fake)["metadata"]["labels"]["zone"] == "a"
    assert kwok.status(fake)["status"]["allocatable"] == {
        "cpu": "32",
        "memory": "256Gi",
        "pods": "110",
        "nvidia.com/gpu": "8",
    }


@pytest.mark.parametrize(
    ("ready", "taints", "allocatable", "expected"),
    [
        ("True", [], {"nvidia.com/gpu": "4"}, True),
        ("False", [], {"nvidia.com/gpu": "4"}, False),
        ("Unknown", [], {"nvidia.com/gpu": "4"}, False),
        ("True", [{"key": "node.kubernetes.io/unreachable"}], {"nvidia.com/gpu": "4"}, False),
        ("True", [{"key": "nvidia.com/gpu"}], {"nvidia.com/gpu": "4"}, True),
        ("True", [], {}, False),
    ],
    ids=["ready", "not ready", "unknown", "tainted by the control plane", "tainted for GPUs", "without GPUs"],
)
def test_node_is_ready_for_pods_with_gpus(
    ready: str, taints: list[dict[str, str]], allocatable: object, expected: object
) -> None:
    """What `up` waits for."""
    item = {
        "spec": {"taints": taints},
        "status": {"conditions": [{"type": "Ready", "status": ready}], "allocatable": allocatable},
    }
    assert fleet.is_ready(json.loads(json.dumps(item)), with_gpus=True) is expected
