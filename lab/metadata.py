"""A cloud's metadata service inside a machine, at the address that clouds have it at.

AWS's is the public amazon-ec2-metadata-mock, the others' are those of `lab.fakes`. None of them can be told
anything while it runs, so whatever the cloud says next is another process.
"""

import sys
from datetime import UTC, datetime
from pathlib import Path

from lab import build, clock, config, inside, node
from lab.api import Api
from lab.errors import LabError
from lab.network import ALIBABA_METADATA_IP, METADATA_IP
from lab.node_files import Machine

PROVIDER_IDS = {
    "aws": "aws:///lab/i-{node}",
    "gcp": "gce://lab/lab/{node}",
    "azure": "azure:///subscriptions/lab/resourceGroups/lab/providers/Microsoft.Compute/virtualMachines/vm0",
    "alibaba": "lab.i-{node}",
}
"""What each cloud's controller writes into a Node. The events of the fake Azure name the machine `vm0`."""
ADDRESSES = {"alibaba": ALIBABA_METADATA_IP}
"""Of each cloud's service that is not at METADATA_IP."""
PORT = 80
NEVER = datetime(2100, 1, 1, tzinfo=UTC).timestamp()
_ROOT = Path(__file__).parents[1]


def adopt(api: Api, machine: Machine, cloud: str) -> None:
    """Make the Node one of that cloud's, for good: a providerID can't be changed."""
    if cloud not in PROVIDER_IDS:
        raise LabError(f"cloud {cloud!r} is none of {', '.join(PROVIDER_IDS)}")
    name = machine.spec.name
    path, wanted = f"/api/v1/nodes/{name}", PROVIDER_IDS[cloud].format(node=name)
    before = api.get(path).expect(name)["spec"].get("providerID")
    if before not in {None, wanted}:
        raise LabError(
            f"node {name} is {before}: `{config.command(machine.state.name)} node back {name}` "
            "replaces it by one of no cloud"
        )
    api.merge(path, {"spec": {"providerID": wanted}}).expect(f"the providerID of {name}")


def say(machine: Machine, cloud: str, since: float = NEVER, deadline: float = NEVER) -> None:
    """From `since` on (Unix seconds) it tells that the machine is taken at `deadline`; it is up on return."""
    address = ADDRESSES.get(cloud, METADATA_IP)
    if cloud == "aws":
        words = _ec2(since, deadline)
    else:
        words = [
            "env",
            f"PYTHONPATH={_ROOT}",
            sys.executable,
            "-m",
            "lab.fakes",
            cloud,
            address,
            str(PORT),
        ]
        words += [str(since), str(deadline)] if since < NEVER else []
    inside.Guest(machine.metadata_file).stop()
    log = machine.state.log / f"metadata-{machine.spec.name}.log"
    guest = inside.spawn(machine, *words, log=log, pid_file=machine.metadata_file)
    what = f"{cloud}'s metadata service in {machine.spec.name} ({log})"
    clock.wait_for(what, lambda: guest.running() and _listens(machine, address), seconds=10, every=0.02)


def _ec2(since: float, deadline: float) -> list[str]:
    """The mock's tokens are void when it begins anew, as a machine's are after 6 hours at the latest."""
    program = build.build_one("ec2-metadata-mock")
    command = [str(program), "spot", "--imdsv2", "--hostname", METADATA_IP, "--port", str(PORT)]
    moments = {"mock-trigger-time": since, "rebalance-trigger-time": NEVER, "time": deadline}
    flags = [word for name, moment in moments.items() for word in (f"--{name}", _rfc3339(moment))]
    return [*command, *flags, "--action", "terminate"]


def _rfc3339(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _listens(machine: Machine, address: str) -> bool:
    """As a line of /proc/net/tcp says it."""
    number = bytes(map(int, reversed(address.split(".")))).hex().upper()
    line = f"{number}:{PORT:04X} 00000000:0000 0A"
    return line in Path(f"/proc/{node.init_pid(machine)}/net/tcp").read_text()
