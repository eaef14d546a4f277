"""The lab's network: a bridge on the host, and for each machine a namespace on a cable to it.

Machine and pod networks are reached by routes alone; no firewall rule is made on the host.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab import shell
from lab.config import Addresses
from lab.errors import LabError

METADATA_IP = "169.254.169.254"
ALIBABA_METADATA_IP = "100.100.100.200"
"""Where clouds serve instance metadata. Every machine has the address; nothing listens until a test does."""


def overlapping(addresses: Addresses) -> list[str]:
    """Networks that the host already routes elsewhere and that this lab would need."""
    ours = (addresses.node_network, addresses.pod_network, addresses.service_network)
    routes = json.loads(shell.run("ip", "-j", "route", "show", "table", "all", "type", "unicast"))
    return sorted({route["dst"] for route in routes if _foreign(route, addresses) and _within(route, ours)})


def _foreign(route: dict[str, Any], addresses: Addresses) -> bool:
    return route.get("dev") != addresses.bridge


def _within(route: dict[str, Any], networks: Sequence[Any]) -> bool:
    try:
        there = type(networks[0])(route["dst"])
    except (KeyError, ValueError):
        return False  # "default", or an IPv6 network
    return any(there.overlaps(network) for network in networks)


def add_bridge(addresses: Addresses) -> None:
    """Make the bridge that all machines of the lab hang on."""
    bridge = addresses.bridge
    _batch(
        f"link add {bridge} type bridge",
        f"addr add {addresses.gateway}/24 dev {bridge}",
        f"link set {bridge} up",
    )


def add_machine(addresses: Addresses, name: str, index: int, count: int) -> None:
    """Give machine `index` of `count` its namespace, cable, addresses and routes to the others' pods."""
    space, veth, ip = addresses.namespace(name), addresses.veth(index), addresses.node(index)
    shell.run("ip", "netns", "add", space)
    _batch(
        f"link add {veth} type veth peer name eth0 netns {space}",
        f"link set {veth} master {addresses.bridge} up",
        f"route replace {addresses.pods(index)} via {ip} dev {addresses.bridge}",
    )
    others = (other for other in range(count) if other != index)
    _batch(
        f"addr add {ip}/24 dev eth0",
        f"addr add {METADATA_IP}/32 dev lo",
        f"addr add {ALIBABA_METADATA_IP}/32 dev lo",
        "link set lo up",
        "link set eth0 up",
        f"route add default via {addresses.gateway}",
        *(f"route add {addresses.pods(other)} via {addresses.node(other)}" for other in others),
        namespace=space,
    )
    shell.run("ip", "netns", "exec", space, "sysctl", "-qw", "net.ipv4.ip_forward=1")


def remove_machine(addresses: Addresses, name: str, index: int) -> None:
    """Take away what `add_machine` made, as far as it is there."""
    if link_exists(addresses.veth(index)):
        shell.run("ip", "link", "del", addresses.veth(index))
    space = addresses.namespace(name)
    if Path("/run/netns", space).exists():
        shell.run("ip", "netns", "del", space)
    if shell.run("ip", "route", "show", addresses.pods(index)):
        shell.run("ip", "route", "del", addresses.pods(index))


def cable(addresses: Addresses, index: int, *, plugged: bool) -> None:
    """Cut machine `index` off from everything, or end that."""
    shell.run("ip", "link", "set", addresses.veth(index), "up" if plugged else "down")


def link_exists(name: str) -> bool:
    """Whether the host has a network interface of this name."""
    return Path("/sys/class/net", name).exists()


def remove_all(addresses: Addresses) -> None:
    """Take away the bridge and every interface and namespace of the slot, whoever made them."""
    for path in Path("/run/netns").glob(f"{addresses.bridge}-*"):
        shell.run("ip", "netns", "del", path.name)
    for path in sorted(Path("/sys/class/net").glob(f"{addresses.bridge}*"), reverse=True):
        if path.exists():
            shell.run("ip", "link", "del", path.name)


def _batch(*lines: str, namespace: str | None = None) -> None:
    where = ("-n", namespace) if namespace else ()
    try:
        shell.run("ip", *where, "-batch", "-", stdin="\n".join(lines) + "\n")
    except LabError as error:
        raise LabError(
            f"network could not be set up ({error}); is the kernel module `veth` there?"
        ) from error
