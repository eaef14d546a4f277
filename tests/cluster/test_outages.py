"""The control plane can't be reached, refuses, or forgets: nothing is lost, and nobody stays deaf.

On a lab of its own, whose API server is stopped and which other tests' operators must not see.
"""

import base64
import contextlib
import secrets
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from lab import audit, clock
from lab.cluster import Lab
from lab.config import DEFAULT_TIMINGS, Config
from lab.gateway import Fault, Gateway
from lab.kwok import FakeNode
from lab.proxy import Mode, Proxy
from tests.cluster import play, rights
from tests.cluster.conftest import ROOT, Operator, lab_name

USER_AGENT = "spottrain-operator"
BINDINGS = (
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/spottrain",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-node-lease/rolebindings/spottrain",
)


@pytest.fixture(scope="module")
def own() -> Iterator[Lab]:
    """A control plane with two machines of 16 GPUs."""
    lab = Lab(lab_name("outages"))
    lab.remove()
    try:
        lab.up(Config(nodes=(), audit=True, timings=DEFAULT_TIMINGS))
        for path in sorted((ROOT / "crds").glob("*.yaml")):
            lab.kubectl("apply", "--server-side", "-f", path)
        clock.wait_for("the resource served", lambda: lab.api.get(f"/apis/{GROUP}").ok, seconds=20)
        lab.add_fake_nodes([FakeNode(f"n{i}", capacity={"nvidia.com/gpu": "16"}) for i in range(2)])
        yield lab
    finally:
        lab.remove()


GROUP = "spottrain.dev/v1alpha1"


@pytest.fixture
def space(own: Lab) -> Iterator[str]:
    name = f"t-{secrets.token_hex(4)}"
    own.kubectl("create", "namespace", name)
    own.wait_namespace(name)
    yield name
    own.kubectl("delete", "namespace", name, "--wait=false")


@contextlib.contextmanager
def operating(
    lab: Lab, test: str, environment: Mapping[str, str], by: tuple[str, ...] = ()
) -> Iterator[Operator]:
    """The operator, as long as it is needed."""
    log = ROOT / "build" / "tests" / f"operator-{test}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    one = Operator(lab, log, environment, by)
    one.start()
    try:
        yield one
    finally:
        one.stop()
    assert "Traceback" not in log.read_text(), f"a pass broke: see {log}"


@contextlib.contextmanager
def operating_behind_proxy(lab: Lab, test: str) -> Iterator[tuple[Proxy, Operator]]:
    """An operator whose way to the API server can be broken."""
    with lab.proxy() as proxy, operating(lab, test, {"KUBECONFIG": str(lab.kubeconfig_via(proxy))}) as one:
        yield proxy, one


def has_pods(job: play.Job) -> Callable[[], bool]:
    return lambda: len(job.pods()) == 4


# Answers that the API server gives when it is not well.


@pytest.fixture
def gate(own: Lab) -> Iterator[Gateway]:
    with own.gateway() as one:
        yield one


@pytest.fixture
def behind(own: Lab, gate: Gateway, request: pytest.FixtureRequest) -> Iterator[Operator]:
    """An operator that reaches the API server through the gateway."""
    with operating(own, request.node.name, {"KUBECONFIG": str(own.kubeconfig_via(gate))}) as one:
        yield one


def test_a_pod_deleted_in_a_watch_gap_that_ends_with_410_is_replaced_within_30_s(
    own: Lab, space: str, gate: Gateway, behind: Operator
) -> None:
    job = play.Job(own.api, space).applied(play.manifest())
    job.wait_running(1)
    with gate.failing(Fault(503, suffix="/pods", methods=frozenset({"GET"}))):
        assert gate.cut_watches("/api/v1/pods") > 0
        job.delete_pod("tr-2-1", grace=0)
        job.wait("the pod gone", lambda: "tr-2-1" not in job.pods())
    answered = gate.answered
    with gate.failing(Fault(410, suffix="/pods", watch=True)):
        job.wait("a watch refused as expired", lambda: gate.answered > answered)
    job.wait_running(2, seconds=30)
    assert job.status()["lastReclaim"]["cause"] == "PodVanished"


@pytest.mark.parametrize("code", [429, 500, 503])
def test_workers_that_the_api_server_would_not_take_are_made_when_it_does(
    own: Lab, space: str, gate: Gateway, behind: Operator, code: int
) -> None:
    with gate.failing(Fault(code, suffix="/pods", methods=frozenset({"POST"}), headers={"Retry-After": "1"})):
        answered = gate.answered
        job = play.Job(own.api, space).applied(play.manifest())
        job.wait("some tries", lambda: gate.answered >= answered + 4)
        assert job.pods() == {}
    job.wait_running(1, seconds=30)


def test_a_status_write_that_fails_begins_no_attempt_twice(
    own: Lab, space: str, gate: Gateway, behind: Operator
) -> None:
    """The intent is written before anything is done, so nothing is done while it can't be."""
    job = play.Job(own.api, space).applied(play.manifest())
    job.wait_running(1)
    before = {pod["metadata"]["uid"] for pod in job.pods().values()}
    with gate.failing(Fault(500, suffix="/status", methods=frozenset({"PATCH"}))):
        answered = gate.answered
        job.reclaim("tr-1-1")
        job.wait("some tries", lambda: gate.answered >= answered + 3)
        assert {pod["metadata"]["uid"] for pod in job.pods().values()} == before
    job.wait_running(2, seconds=30)


# Networks that break.


@pytest.mark.parametrize("mode", [Mode.RESET, Mode.REFUSE])
def test_a23_an_operator_whose_connections_broke_takes_up_its_work(
    own: Lab, space: str, request: pytest.FixtureRequest, mode: Mode
) -> None:
    with operating_behind_proxy(own, f"a23-{mode.value}") as (proxy, operator):
        job = play.Job(own.api, space).applied(play.manifest())
        job.wait_running(1)
        proxy.set(mode)
        job.reclaim("tr-1-1")
        second = play.Job(own.api, space, "tr2").applied(play.manifest("tr2"))
        clock.poll(lambda: "watch of pods" in operator.log.read_text(), seconds=10)
        proxy.set(Mode.FORWARD)
        job.wait("tr2 has its pods", has_pods(second), seconds=60)
        job.wait_running(2, seconds=60)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seconds", [40, 90, 600])
def test_a23_an_operator_in_a_blackhole_hears_again_or_says_that_it_is_deaf(
    own: Lab, space: str, seconds: int
) -> None:
    """No RST: connections of before and of the meantime stay dead for ever."""
    with operating_behind_proxy(own, f"a23-blackhole-{seconds}") as (proxy, operator):
        job = play.Job(own.api, space).applied(play.manifest())
        job.wait_running(1)
        before = {pod["metadata"]["uid"] for pod in job.pods().values()}
        proxy.set(Mode.BLACKHOLE)
        clock.poll(lambda: False, seconds=seconds, every=1.0)
        proxy.set(Mode.FORWARD)
        hears_or_is_restarted(own, space, operator)
        assert {pod["metadata"]["uid"] for pod in job.pods().values()} == before


def hears_or_is_restarted(own: Lab, space: str, operator: Operator) -> None:
    """`tr2` has its pods within 60 s; or liveness fails, and it has them 60 s after the restart."""
    second = play.Job(own.api, space, "tr2").applied(play.manifest("tr2"))
    heard = clock.poll(lambda: has_pods(second)() or operator.get("/healthz") != "ok", seconds=60)
    assert heard, "a passing liveness probe together with an untouched tr2"
    if not has_pods(second)():
        operator.kill()
        operator.start()
        second.wait("tr2 has its pods", has_pods(second), seconds=60)


# Credentials that change, as in a pod: the account's token is a file.


@pytest.fixture
def account(own: Lab, tmp_path: Path) -> Iterator[Path]:
    """What the chart gives the operator; its token and the authority in a folder."""
    rights.grant(own)
    (tmp_path / "ca.crt").write_bytes((own.state.pki / "ca.crt").read_bytes())
    (tmp_path / "namespace").write_text(rights.NAMESPACE)
    new_token(own, tmp_path)
    yield tmp_path
    own.api.call("DELETE", rights.ACCOUNT)


def new_token(own: Lab, folder: Path) -> None:
    """As the kubelet projects it: the file is replaced by another."""
    token = rights.token(own)
    (folder / "new").write_text(token)
    (folder / "new").rename(folder / "token")
    payload = token.split(".")[1]
    assert b"spottrain-system" in base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))


# kopf asks for the API server by its name in the cluster, on port 443.
IN_CLUSTER = ("127.0.43.1", 443)
IN_A_POD = (
    "mount -t tmpfs tmpfs /run && mkdir -p /run/secrets/kubernetes.io/serviceaccount && "
    'mount --bind "$0" /run/secrets/kubernetes.io/serviceaccount && '
    'mount --bind "$0/hosts" /etc/hosts && exec "$@"'
)


@contextlib.contextmanager
def as_account(own: Lab, account: Path, test: str) -> Iterator[Operator]:
    """The operator with the credentials of a pod, in a mount namespace of its own."""
    place = {"KUBERNETES_SERVICE_HOST": "kubernetes.default.svc", "KUBERNETES_SERVICE_PORT": "443"}
    (account / "hosts").write_text(f"127.0.0.1 localhost\n{IN_CLUSTER[0]} kubernetes.default.svc\n")
    by = ("unshare", "--mount", "sh", "-c", IN_A_POD, str(account))
    with Proxy((own.addresses.gateway, 6443), IN_CLUSTER), operating(own, test, place, by) as one:
        yield one


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a23_an_operator_hears_again_when_its_role_bindings_are_back(
    own: Lab, space: str, account: Path
) -> None:
    """For two minutes they are gone; watches that are open then are not cut, new ones are refused."""
    with as_account(own, account, "a23-bindings") as operator:
        play.Job(own.api, space).applied(play.manifest()).wait_running(1)
        kept = [own.api.get(path).expect("a binding") for path in BINDINGS]
        for path in BINDINGS:
            own.api.call("DELETE", path).expect("deleting a binding")
        clock.poll(lambda: False, seconds=120, every=1.0)
        for path, document in zip(BINDINGS, kept, strict=True):
            del document["metadata"]["resourceVersion"], document["metadata"]["uid"]
            own.api.call("POST", path.rpartition("/")[0], document).expect("the binding")
        hears_or_is_restarted(own, space, operator)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a23_an_operator_goes_on_with_its_new_token(own: Lab, space: str, account: Path) -> None:
    """The account is made anew, so that its old tokens are worth nothing."""
    with as_account(own, account, "a23-token") as operator:
        play.Job(own.api, space).applied(play.manifest()).wait_running(1)
        document = own.api.get(rights.ACCOUNT).expect("the account")
        own.api.call("DELETE", rights.ACCOUNT).expect("deleting the account")
        for field in ("resourceVersion", "uid", "creationTimestamp", "managedFields"):
            document["metadata"].pop(field, None)
        own.api.call("POST", rights.ACCOUNT.rpartition("/")[0], document).expect("the account")
        new_token(own, account)
        hears_or_is_restarted(own, space, operator)


# The API server away.


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seconds", [15, pytest.param(300, marks=pytest.mark.slow)])
def test_an_api_server_that_was_down_under_load_costs_no_pod(own: Lab, space: str, seconds: int) -> None:
    """Leases are not renewed meanwhile, and every one looks old afterwards: no node is taken for lost."""
    with operating(own, f"stopped-{seconds}", {}):
        jobs = [play.Job(own.api, space, f"g{i}").applied(play.manifest(f"g{i}")) for i in range(6)]
        for job in jobs:
            job.wait_running(1)
        jobs[0].evict("g0-1-1")
        jobs[0].wait("its restart begun", lambda: jobs[0].status().get("attempt") == 2)
        own.api_stop()
        try:
            own.controllers_stop()
            clock.poll(lambda: False, seconds=seconds, every=1.0)
        finally:
            own.api_start()
            own.controllers_start()
        if seconds > 60:  # after less kwok asks again soon enough by itself
            own.kwok_restart()
        jobs[0].wait_running(2, seconds=120)
        clock.wait_for("nodes ready", lambda: play.ready(own.api) == {"n0", "n1"}, seconds=60)
        clock.poll(lambda: False, seconds=50, every=1.0)  # the lease's time, after which silence would count
        for job in jobs[1:]:
            assert job.status()["phase"] == "Running"
            assert set(job.pods()) == {f"{job.name}-{index}-1" for index in range(4)}
        assert deleted_by_us(own, space) <= {f"g0-{index}-1" for index in range(4)}
    clock.wait_for("all controllers at work", lambda: serves_new_namespaces(own), seconds=180)


def serves_new_namespaces(own: Lab) -> bool:
    """The controllers of whichever test comes next are back too."""
    name = f"t-{secrets.token_hex(4)}"
    own.kubectl("create", "namespace", name)
    try:
        return bool(
            clock.poll(
                lambda: own.api.get(f"/api/v1/namespaces/{name}/serviceaccounts/default").ok, seconds=10
            )
        )
    finally:
        own.kubectl("delete", "namespace", name, "--wait=false")


def deleted_by_us(own: Lab, space: str) -> set[str]:
    requests = audit.requests(own.state, user_agent=USER_AGENT)
    return {pod_of(one) for one in requests if one["verb"] == "delete" and namespace_of(one) == space}


def pod_of(event: Mapping[str, Any]) -> str:
    return str(event["objectRef"]["name"])


def namespace_of(event: Mapping[str, Any]) -> str:
    """Empty for what is in none, and for requests of no object, such as what kinds there are."""
    return str(event.get("objectRef", {}).get("namespace", ""))


def test_a18_every_write_of_ours_is_strict_about_unknown_fields_and_none_is_refused_as_invalid(
    own: Lab, space: str
) -> None:
    """As the API server's own record has it."""
    with operating(own, "strict", {}):
        job = play.Job(own.api, space).applied(play.manifest())
        job.wait_running(1)
        job.evict("tr-1-1")
        job.wait_running(2)
    writes = [one for one in audit.requests(own.state, user_agent=USER_AGENT) if namespace_of(one) == space]
    assert [one["requestURI"] for one in writes if one["responseStatus"]["code"] == 422] == []
    made = [one for one in writes if one["verb"] == "create"]
    assert len(made) == 9  # the Job, and four pods twice
    assert {"fieldValidation=Strict" in one["requestURI"] for one in made} == {True}
