"""etcd, API server, controller-manager, scheduler and DNS as processes of the host."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab import audit, clock, kubeconfig, pki, process, shell
from lab.api import Api
from lab.config import Config
from lab.errors import LabError
from lab.state import State

API_SERVER = "kube-apiserver"
API_PORT = 6443
# For Go programs: memory is less scarce on a lab's machine than its cores, on which everything else runs too.
FEWER_COLLECTIONS = {"GOGC": "300", "GOMEMLIMIT": "4GiB"}
_API_GRACE = 3.0
# Ended in this order. The API server waits for clients that are dead already, hence the short grace.
STOPPING = (
    ("coredns", 2.0),
    ("kube-scheduler", 2.0),
    ("kube-controller-manager", 2.0),
    (API_SERVER, _API_GRACE),
    ("etcd", 3.0),
)

BUSY = "busy"
_TOKENS = "tokens.csv"

_CONTROLLERS = ("kube-controller-manager", "kube-scheduler")


def api(state: State) -> Api:
    """The API server as the administrator sees it."""
    folder = state.pki
    return Api(
        state.addresses.api_url, folder / "ca.crt", pki.Pair(folder / "admin.key", folder / "admin.crt")
    )


def start(state: State, wanted: Config) -> None:
    """Start everything but the machines; the API server answers and DNS is registered on return."""
    _credentials(state)
    _launch(state, "etcd", _etcd(state))
    start_api(state, wanted)
    for path, document in dns_objects(state.addresses.dns, state.addresses.gateway):
        api(state).apply(path, document)
    _start_clients(state, wanted)


def heal(state: State, wanted: Config) -> list[str]:
    """Start what does not run, wake the API server if it was paused; returns the names."""
    return ([API_SERVER] if start_api(state, wanted) else []) + _start_clients(state, wanted)


def _start_clients(state: State, wanted: Config) -> list[str]:
    programs = {
        "kube-controller-manager": _controller_manager(state, wanted),
        "kube-scheduler": _scheduler(state),
        "coredns": _coredns(state),
    }
    dead = [name for name in programs if process.find(state.pids / name) is None]
    for name in dead:
        _launch(state, name, programs[name])
    return dead


def start_api(state: State, wanted: Config) -> bool:
    """Start the API server, or wake it; it answers on return. False when it ran already."""
    if process.wake(state.pids / API_SERVER):
        woken = True
    elif woken := process.find(state.pids / API_SERVER) is None:
        _launch(state, API_SERVER, _apiserver(state, wanted))
    server = api(state)
    wait_ready(state, API_SERVER, lambda: server.get("/readyz").ok, seconds=60)
    return woken


def stop_api(state: State) -> None:
    """End the API server alone: its clients see their connections close, and new ones refused."""
    process.stop(state.pids / API_SERVER, grace=_API_GRACE)


def pause_api(state: State) -> None:
    """Freeze the API server: connections stay open, and nothing is answered."""
    process.freeze(state.pids / API_SERVER)


def stop_controllers(state: State) -> None:
    """End kube-controller-manager and kube-scheduler; `heal` starts them."""
    for name in _CONTROLLERS:
        process.stop(state.pids / name, grace=2.0)


def restart_controllers(state: State, wanted: Config) -> None:
    """Start kube-controller-manager and kube-scheduler anew, with other limits."""
    stop_controllers(state)
    _start_clients(state, wanted)


def stop(state: State) -> None:
    """End the processes, clients before servers."""
    for name, grace in STOPPING:
        process.stop(state.pids / name, grace=grace)


def stored(state: State) -> bool:
    """Whether the storage lives; all others can be started again beside it."""
    return process.find(state.pids / "etcd") is not None


def running(state: State) -> bool:
    """Whether the API server and its storage live, and it is not paused."""
    pid_file = state.pids / API_SERVER
    return stored(state) and process.find(pid_file) is not None and not process.frozen(pid_file)


def wait_ready(state: State, name: str, probe: Any, *, seconds: float) -> None:
    """Wait for a program to answer; LabError with the end of its log when it ended or stays silent."""

    def settled() -> bool:
        return probe() or process.find(state.pids / name) is None

    if not clock.poll(settled, seconds=seconds, every=0.05) or process.find(state.pids / name) is None:
        log = state.log / f"{name}.log"
        last = log.read_text(errors="replace").strip().splitlines()[-3:]
        raise LabError(f"{name} does not run; the end of {log}:\n" + "\n".join(last))


def _launch(state: State, name: str, flags: Sequence[shell.Word]) -> None:
    process.spawn(
        [state.bin / name, *flags],
        log=state.log / f"{name}.log",
        pid_file=state.pids / name,
        env=FEWER_COLLECTIONS,
    )


def _credentials(state: State) -> None:
    addresses, folder = state.addresses, state.pki
    names = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost")
    ips = ("127.0.0.1", addresses.api_service, addresses.gateway)
    alternatives = ",".join([*(f"DNS:{name}" for name in names), *(f"IP:{ip}" for ip in ips)])
    pki.service_accounts(folder)
    pki.certificate(folder, "apiserver", "/CN=kube-apiserver", alternatives)
    _user(state, "admin", "/O=system:masters/CN=admin")
    (folder / _TOKENS).write_text(f"{pki.token(folder, BUSY)},{BUSY},{BUSY},system:masters\n")
    for name in (*_CONTROLLERS, "kube-proxy"):
        # kube-proxy may not use a machine's identity: that one may not list EndpointSlices.
        _user(state, name, f"/CN=system:{name}")


def write_kubeconfig(state: State, name: str, server: str, user: str = "admin") -> Path:
    """A kubeconfig of that name for one of our users, who reaches the API server at the URL `server`."""
    return _write(state, name, server, pki.Pair(state.pki / f"{user}.key", state.pki / f"{user}.crt"))


def busy_kubeconfig(state: State) -> Path:
    """A kubeconfig with all rights for programs that ask much, and have a token as they have in pods.

    The server remembers a token; a client's certificate it verifies anew with each request.
    """
    token = pki.token(state.pki, BUSY)
    return _write(state, BUSY, state.addresses.api_url, token)


def _write(state: State, name: str, server: str, user: pki.Pair | str) -> Path:
    path = state.folder / f"{name}.kubeconfig"
    return kubeconfig.write(path, lab=f"lab-{state.name}", server=server, ca=state.pki / "ca.crt", user=user)


def _user(state: State, name: str, subject: str) -> Path:
    pki.certificate(state.pki, name, subject)
    return write_kubeconfig(state, name, state.addresses.api_url, name)


def _etcd(state: State) -> list[shell.Word]:
    client, peer = (f"http://127.0.0.1:{state.addresses.port(offset)}" for offset in (0, 1))
    return [
        *("--data-dir", state.etcd, "--log-level", "warn"),
        *("--listen-client-urls", client, "--advertise-client-urls", client),
        *(
            "--listen-peer-urls",
            peer,
            "--initial-advertise-peer-urls",
            peer,
            "--initial-cluster",
            f"default={peer}",
        ),
        "--unsafe-no-fsync",  # a lab need not survive a power cut, and must not wait for the disk
    ]


def _apiserver(state: State, wanted: Config) -> list[shell.Word]:
    addresses, folder = state.addresses, state.pki
    return [
        *("--etcd-servers", f"http://127.0.0.1:{addresses.port(0)}"),
        *(
            "--bind-address",
            addresses.gateway,
            "--advertise-address",
            addresses.gateway,
            "--secure-port",
            API_PORT,
        ),
        *("--service-cluster-ip-range", str(addresses.service_network)),
        *("--authorization-mode", "Node,RBAC", "--enable-admission-plugins", "NodeRestriction"),
        *("--client-ca-file", folder / "ca.crt", "--token-auth-file", folder / _TOKENS),
        *("--tls-cert-file", folder / "apiserver.crt", "--tls-private-key-file", folder / "apiserver.key"),
        *("--kubelet-client-certificate", folder / "admin.crt", "--kubelet-client-key", folder / "admin.key"),
        *("--kubelet-preferred-address-types", "InternalIP"),
        *("--service-account-issuer", "https://kubernetes.default.svc"),
        *(
            "--service-account-key-file",
            folder / "sa.pub",
            "--service-account-signing-key-file",
            folder / "sa.key",
        ),
        "--allow-privileged",
        # The host has no kube-proxy: webhooks named by a Service are called at the pod's own address.
        "--enable-aggregator-routing",
        *(audit.flags(state) if wanted.audit else ()),
    ]


def _controller_manager(state: State, wanted: Config) -> list[shell.Word]:
    folder, timings = state.pki, wanted.timings
    limits = {"--kube-api-qps": wanted.kcm_qps, "--kube-api-burst": wanted.kcm_burst}
    return [
        *("--kubeconfig", state.folder / "kube-controller-manager.kubeconfig", "--leader-elect=false"),
        *("--bind-address", "127.0.0.1", "--secure-port", state.addresses.port(2)),
        *("--service-account-private-key-file", folder / "sa.key", "--root-ca-file", folder / "ca.crt"),
        *("--cluster-signing-cert-file", folder / "ca.crt", "--cluster-signing-key-file", folder / "ca.key"),
        "--use-service-account-credentials",
        *("--node-monitor-grace-period", f"{timings.monitor_grace}s"),
        *("--node-monitor-period", f"{timings.monitor_period}s"),
        *(f"{flag}={limit}" for flag, limit in limits.items() if limit is not None),
    ]


def _scheduler(state: State) -> list[shell.Word]:
    return [
        *("--kubeconfig", state.folder / "kube-scheduler.kubeconfig", "--leader-elect=false"),
        *("--bind-address", "127.0.0.1", "--secure-port", state.addresses.port(3)),
    ]


# No cache: a stale or negative answer would hold up ranks that look for each other.
_COREFILE = """\
.:53 {{
  bind {gateway}
  errors
  kubernetes cluster.local in-addr.arpa {{
    kubeconfig {kubeconfig}
    pods insecure
    ttl 1
  }}
}}
"""


def _coredns(state: State) -> list[shell.Word]:
    corefile = state.folder / "Corefile"
    corefile.write_text(_COREFILE.format(gateway=state.addresses.gateway, kubeconfig=state.admin))
    return ["-conf", corefile]


def dns_objects(cluster_ip: str, address: str) -> list[tuple[str, dict[str, Any]]]:
    """The DNS Service and the endpoint outside the cluster behind it, each with its path."""
    protocols = (("dns", "UDP"), ("dns-tcp", "TCP"))
    ports = [{"name": name, "port": 53, "protocol": protocol} for name, protocol in protocols]
    core, discovery = "/api/v1", "/apis/discovery.k8s.io/v1"
    namespace = "namespaces/kube-system"
    labels = {"kubernetes.io/service-name": "kube-dns", "endpointslice.kubernetes.io/managed-by": "lab"}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kube-dns"},
        "spec": {"clusterIP": cluster_ip, "ports": ports},
    }
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "kube-dns-host", "labels": labels},
        "addressType": "IPv4",
        "ports": ports,
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
    }
    return [
        (f"{core}/{namespace}/services/kube-dns", service),
        (f"{discovery}/{namespace}/endpointslices/kube-dns-host", endpoints),
    ]
