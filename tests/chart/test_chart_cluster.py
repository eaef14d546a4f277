"""The chart on the real API server: applied, restricted, with just its rights, upgraded and removed."""

import collections.abc as cabc
import json
import secrets
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab import api, clock, cluster, shell
from manifests import render

pytestmark = pytest.mark.cluster

Object = dict[str, Any]
RESTRICTED = "pod-security.kubernetes.io/enforce=restricted"


@pytest.fixture(scope="module")
def place(lab: cluster.Lab) -> cabc.Iterator[str]:
    """A namespace for restricted pods, whose name is that of the chart's objects too."""
    name = f"chart-{secrets.token_hex(3)}"
    lab.kubectl("create", "namespace", name)
    lab.kubectl("label", "namespace", name, RESTRICTED)
    yield name
    lab.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="module")
def objects(place: str) -> list[Object]:
    """The chart with every feature on that this API server knows; no operator is started."""
    everything = render.documents(
        render.template(
            f"--namespace={place}",
            f"--set=fullnameOverride={place}",
            f"--set=namespaces={{{place}}}",
            "--set=spotLabels.pool=cheap",
            "--set=onDemandLabels.pool=safe",
        )
    )
    for one in everything:
        if one["kind"] == "Deployment":
            one["spec"]["replicas"] = 0
    return everything


@pytest.fixture(scope="module")
def applied(lab: cluster.Lab, objects: list[Object], place: str) -> cabc.Iterator[list[str]]:
    """What `kubectl apply` (client-side) said to the objects, the first and the second time."""
    text = yaml.safe_dump_all(objects)
    said = [lab.kubectl("apply", "-f", "-", stdin=text) for _ in range(2)]
    yield said
    lab.kubectl("-n", "kube-node-lease", "delete", "role,rolebinding", place)
    lab.kubectl("delete", "clusterrolebinding", place)
    lab.kubectl("delete", "clusterrole", place, f"{place}-view", f"{place}-edit")


def words(said: str) -> set[str]:
    """What kubectl says of the objects, without the resource, which other tests may have changed."""
    return {line.split()[-1] for line in said.splitlines() if not line.startswith("customresourcedefinition")}


def test_d8_every_object_can_be_applied_twice(applied: list[str]) -> None:
    first, second = applied
    assert words(first) == {"created"}
    assert words(second) == {"unchanged"}
    assert f"{render.CRD_NAME} unchanged" in second


def pod_of(objects: list[Object], place: str) -> Object:
    """The operator's pod, as the Deployment would make it."""
    (deployment,) = (one for one in objects if one["kind"] == "Deployment")
    template: Object = deployment["spec"]["template"]
    metadata = {**template["metadata"], "name": "probe", "namespace": place}
    return {"apiVersion": "v1", "kind": "Pod", **template, "metadata": metadata}


def test_the_operators_pod_is_let_into_a_restricted_namespace(
    lab: cluster.Lab, applied: list[str], objects: list[Object], place: str
) -> None:
    assert applied
    said = lab.kubectl(
        *("create", "--dry-run=server", "--warnings-as-errors", "-f", "-"),
        stdin=json.dumps(pod_of(objects, place)),
    )
    assert said == "pod/probe created (server dry run)\n"


def test_that_namespace_would_have_refused_a_careless_pod(
    lab: cluster.Lab, applied: list[str], objects: list[Object], place: str
) -> None:
    """Or the test above would prove nothing."""
    assert applied
    pod = pod_of(objects, place)
    del pod["spec"]["containers"][0]["securityContext"]
    answer = lab.api.call("POST", f"/api/v1/namespaces/{place}/pods?dryRun=All", pod)
    assert answer.status == 403
    assert "allowPrivilegeEscalation" in answer.body["message"]


def allowed(server: api.Api, user: str, place: str, verb: str, resource: str) -> bool:
    """What `kubectl auth can-i --as` says: `resource` is [group/]plural[:subresource]."""
    group, _, plural = resource.rpartition("/")
    plural, _, sub = plural.partition(":")
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": user,
            "resourceAttributes": {
                "namespace": place,
                "verb": verb,
                "group": group,
                "resource": plural,
                "subresource": sub,
            },
        },
    }
    answer = server.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    found: bool = answer.expect("the review")["status"]["allowed"]
    return found


MAY = [
    *[(verb, "spottrain.dev/spottrainingjobs") for verb in ("list", "watch", "delete")],
    *[("patch", f"{one}:status") for one in ("spottrain.dev/spottrainingjobs", "batch/jobs")],
    *[(verb, "batch/jobs") for verb in ("get", "list", "watch", "create", "patch", "delete")],
    *[(verb, "pods") for verb in ("get", "list", "watch", "create", "patch", "delete")],
    *[(verb, "services") for verb in ("get", "create")],
    *[("get", "pods:log"), ("create", "events")],
]
MAY_NOT = [
    *[("get", "secrets"), ("get", "configmaps"), ("create", "pods:exec"), ("create", "apps/deployments")],
    *[("create", "spottrain.dev/spottrainingjobs"), ("create", "pods:eviction"), ("delete", "services")],
    *[("patch", "spottrain.dev/spottrainingjobs"), ("list", "services"), ("patch", "services")],
]


def test_the_operator_may_do_its_work_and_no_more(lab: cluster.Lab, applied: list[str], place: str) -> None:
    assert applied
    user = f"system:serviceaccount:{place}:{place}"
    server = lab.api
    assert [one for one in MAY if not allowed(server, user, place, *one)] == []
    assert [one for one in MAY_NOT if allowed(server, user, place, *one)] == []
    assert [one for one in MAY if allowed(server, user, "kube-system", *one)] == []
    assert allowed(server, user, "kube-node-lease", "list", "coordination.k8s.io/leases")
    assert not allowed(server, user, "kube-node-lease", "update", "coordination.k8s.io/leases")
    assert allowed(server, user, "", "watch", "nodes")
    assert not allowed(server, user, "", "patch", "nodes")


@pytest.mark.parametrize(
    ("role", "verbs"),
    [("view", {"get", "list", "watch"}), ("edit", {"get", "list", "watch", "create", "patch", "delete"})],
)
def test_users_of_a_namespace_get_its_jobs_with_the_usual_roles(
    lab: cluster.Lab, applied: list[str], place: str, role: str, verbs: set[str]
) -> None:
    assert applied
    user = f"{role}-{place}"
    lab.kubectl("-n", place, "create", "rolebinding", user, f"--clusterrole={role}", f"--user={user}")
    server = lab.api

    def granted() -> bool:
        return all(allowed(server, user, place, verb, "spottrain.dev/spottrainingjobs") for verb in verbs)

    clock.wait_for(f"the role {role} to cover jobs", granted, seconds=20)
    may_create = allowed(server, user, place, "create", "spottrain.dev/spottrainingjobs")
    assert may_create == ("create" in verbs)
    assert not allowed(server, user, place, "patch", "spottrain.dev/spottrainingjobs:status")


class Release:
    """A release of the chart, without a running operator, in a namespace of its own."""

    def __init__(self, lab: cluster.Lab, place: str) -> None:
        self._lab = lab
        self._place = place

    def install(self, chart: Path) -> None:
        """Install or upgrade; the resource may be there from elsewhere."""
        self._helm(
            *("upgrade", "--install", "d4", chart, f"--set=fullnameOverride={self._place}-d4"),
            *("--set=nodeSelector.no-such=node", "--set=rbac.aggregate=false", "--take-ownership"),
        )

    def uninstall(self) -> None:
        """Remove it."""
        self._helm("uninstall", "d4", "--wait")

    def _helm(self, *line: shell.Word) -> None:
        shell.run(render.helm(), *line, "--namespace", self._place, env=self._lab.env())


def older(chart: Path) -> Path:
    """The same chart as if spec.spot.window had not been thought of yet."""
    shutil.copytree(render.CHART, chart)
    copy = chart / "files" / render.CRD.name
    crd = yaml.safe_load(copy.read_text())
    (version,) = crd["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    del spec["properties"]["spot"]["properties"]["window"]
    copy.write_text(yaml.safe_dump(crd))
    return chart


def test_d4_an_upgrade_brings_new_fields_and_an_uninstall_keeps_the_jobs(
    lab: cluster.Lab, place: str, tmp_path: Path
) -> None:
    jobs = f"/apis/spottrain.dev/v1alpha1/namespaces/{place}/spottrainingjobs"
    sample = yaml.safe_load((render.ROOT / "manifests/samples/single.yaml").read_text())
    sample["spec"]["suspend"] = True
    release = Release(lab, place)
    release.install(older(tmp_path / "older"))
    try:

        def pruned() -> bool:
            sample["spec"]["spot"] = {"window": "2m"}
            stored = lab.api.call("POST", f"{jobs}?dryRun=All", sample)
            return stored.ok and "window" not in stored.body["spec"]["spot"]

        clock.wait_for("the older schema to be served", pruned, seconds=20)
        lab.api.call("POST", jobs, sample).expect("a job under the older schema")
        release.install(render.CHART)

        def kept() -> bool:
            changed = lab.api.merge(f"{jobs}/single", {"spec": {"spot": {"window": "2m"}}})
            return bool(changed.expect("the job")["spec"]["spot"].get("window") == "2m")

        clock.wait_for("the new field to be kept", kept, seconds=20)
    finally:
        release.uninstall()
    assert (
        lab.api.get(f"{jobs}/single").expect("the job after the uninstall")["spec"]["spot"]["window"] == "2m"
    )
    lab.kubectl("get", "crd", render.CRD_NAME)
