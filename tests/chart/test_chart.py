"""The chart, rendered by the real helm."""

import json
import re
import subprocess
import tomllib
from typing import Any

import pytest
import yaml

from lab import errors
from manifests import render
from spottrain.api import clouds, names
from spottrain.plan import snapshot as snap

EVERYTHING = (
    "--set=podMonitor.enabled=true",
    "--set=workerMonitor.enabled=true",
    "--set=namespaces={team-a,team-b}",
    "--set=spotLabels.pool=cheap",
    "--set=onDemandLabels.pool=safe",
    "--set=noticeMarks={label:acme.com/leaving=true}",
    "--set=priorityClassName=system-cluster-critical",
    "--set=replicas=2",
    "--set=agent.enabled=true",
)


def objects(*options: str) -> list[dict[str, Any]]:
    return render.documents(render.template(*options))


def of_kind(kind: str, *options: str) -> list[dict[str, Any]]:
    return [one for one in objects(*options) if one["kind"] == kind]


def operator(*options: str) -> dict[str, Any]:
    (deployment,) = of_kind("Deployment", *options)
    spec: dict[str, Any] = deployment["spec"]["template"]["spec"]
    return spec


def environment(*options: str) -> dict[str, str]:
    (container,) = operator(*options)["containers"]
    return {one["name"]: one.get("value", "") for one in container["env"]}


def off_spot(*options: str) -> dict[str, tuple[str, ...]]:
    """Label → values of nodes that the operator refuses."""
    affinity = operator(*options)["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert {one["operator"] for one in term["matchExpressions"]} == {"NotIn"}
    return {one["key"]: tuple(one["values"]) for one in term["matchExpressions"]}


def test_helm_lint_has_nothing_to_say() -> None:
    line = [render.helm(), "lint", "--strict", str(render.CHART)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "[WARNING]" not in done.stdout


def test_made_files_are_up_to_date() -> None:
    wanted = render.outputs()
    assert {path.name: path.read_text() for path in wanted} == {
        path.name: text for path, text in wanted.items()
    }


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("nodeLosSeconds=5", "additional properties 'nodeLosSeconds' not allowed"),
        ("crds.kep=false", "additional properties 'kep' not allowed"),
        ("nodeLossSeconds=soon", "at '/nodeLossSeconds': got string, want number"),
        ("nodeLossSeconds=0", "at '/nodeLossSeconds': minimum: got 0, want 1"),
        ("image.pullPolicy=Sometimes", "at '/image/pullPolicy': value must be one of"),
        ("namespaces={Team_A}", "at '/namespaces/0': 'Team_A' does not match pattern"),
        ("logLevel=loud", "at '/logLevel': value must be one of 'debug', 'info', 'warning', 'error'"),
    ],
)
def test_a_wrong_value_is_refused_with_its_path(option: str, sentence: str) -> None:
    with pytest.raises(errors.LabError, match=re.escape(sentence)):
        render.template(f"--set={option}")


def test_two_monitors_are_refused_because_metrics_would_count_twice() -> None:
    with pytest.raises(errors.LabError, match="every metric would be counted twice: choose one"):
        render.template("--set=podMonitor.enabled=true", "--set=serviceMonitor.enabled=true")


def test_chart_operator_and_image_have_one_version() -> None:
    chart = yaml.safe_load((render.CHART / "Chart.yaml").read_text())
    project = tomllib.loads((render.ROOT / "pyproject.toml").read_text())["project"]
    (container,) = operator()["containers"]
    assert [chart["version"], chart["appVersion"]] == [project["version"]] * 2
    assert container["image"].endswith(f":{project['version']}")
    assert snap.Settings().helper_image == container["image"], "of an operator that no chart has started"
    assert container["image"] in chart["annotations"]["artifacthub.io/images"]


def test_an_old_cluster_is_refused() -> None:
    with pytest.raises(errors.LabError, match=r"requires kubeVersion: >=1\.32\.0-0"):
        render.template("--kube-version=1.31.9")


def test_values_and_their_schema_name_the_same_keys() -> None:
    values = yaml.safe_load((render.CHART / "values.yaml").read_text())
    schema = json.loads((render.CHART / "values.schema.json").read_text())
    assert values.keys() == schema["properties"].keys() - {"global"}
    monitor = schema["definitions"]["monitor"]
    for key, value in values.items():
        part = schema["properties"][key]
        part = monitor if part.get("$ref") == "#/definitions/monitor" else part
        if isinstance(value, dict) and "properties" in part:
            assert value.keys() == part["properties"].keys(), key


def test_every_value_is_documented() -> None:
    text = (render.CHART / "values.yaml").read_text()
    documented = {one.path for one in render.documented_values(text)}
    values = yaml.safe_load(text)
    nested = {key for key in values if any(path.startswith(f"{key}.") for path in documented)}
    leaves = {f"{key}.{inner}" for key in nested for inner in values[key]} | (values.keys() - nested)
    assert documented == leaves


def test_the_resource_is_the_one_in_crds_and_stays_on_uninstall() -> None:
    (made,) = of_kind("CustomResourceDefinition")
    source = yaml.safe_load(render.CRD.read_text())
    assert made["spec"] == source["spec"]
    assert made["metadata"]["name"] == source["metadata"]["name"]
    assert made["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


def test_the_resource_goes_with_the_release_only_if_asked() -> None:
    (made,) = of_kind("CustomResourceDefinition", "--set=crds.keep=false")
    assert "annotations" not in made["metadata"]
    assert of_kind("CustomResourceDefinition", "--set=crds.enabled=false") == []


def test_the_operator_is_restricted() -> None:
    pod = operator()
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == 65532
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_one_operator_needs_no_lease_and_is_never_two() -> None:
    (deployment,) = of_kind("Deployment")
    assert deployment["spec"]["replicas"] == 1
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    assert "SPOTTRAIN_LEASE" not in environment()
    assert of_kind("PodDisruptionBudget") == []


def test_of_several_operators_one_leads_by_a_lease_that_they_may_write() -> None:
    two = "--set=replicas=2"
    lease = environment(two)["SPOTTRAIN_LEASE"]
    roles = {one["metadata"]["name"]: one for one in of_kind("Role", two)}
    leader = roles["spottrain-leader"]
    assert leader["metadata"]["namespace"] == render.NAMESPACE
    assert [(rule.get("resourceNames"), rule["verbs"]) for rule in leader["rules"]] == [
        (None, ["create"]),
        ([lease], ["get", "update"]),
    ]
    (budget,) = of_kind("PodDisruptionBudget", two)
    assert budget["spec"]["maxUnavailable"] == 1


def test_of_config_maps_it_may_read_and_change_the_one_that_keeps_what_is_learnt_of_pools() -> None:
    name = environment()["SPOTTRAIN_POOLS_MAP"]
    roles = {one["metadata"]["name"]: one for one in of_kind("Role")}
    role = roles["spottrain-pools"]
    assert role["metadata"]["namespace"] == render.NAMESPACE
    assert [(rule["resources"], rule.get("resourceNames"), rule["verbs"]) for rule in role["rules"]] == [
        (["configmaps"], None, ["create"]),
        (["configmaps"], [name], ["get", "patch"]),
    ]


def test_a_map_of_prices_may_be_read_where_one_is_named_and_the_team_label_reaches_the_operator() -> None:
    """An empty variable isn't stored, so there is none of what nobody asked for."""
    assert not {"SPOTTRAIN_PRICES_MAP", "SPOTTRAIN_TEAM_LABEL"} & environment().keys()
    options = ("--set=pricesMap=offers", "--set=teamLabel=acme.com/team")
    named = environment(*options)
    assert (named["SPOTTRAIN_PRICES_MAP"], named["SPOTTRAIN_TEAM_LABEL"]) == ("offers", "acme.com/team")
    (role,) = [one for one in of_kind("Role", *options) if one["metadata"]["name"] == "spottrain-pools"]
    rule = role["rules"][-1]
    assert (rule["resources"], rule["resourceNames"], rule["verbs"]) == (["configmaps"], ["offers"], ["get"])
    with pytest.raises(errors.LabError, match="pricesMap"):
        render.template("--set=pricesMap=Offers")


def test_probes_ask_the_paths_that_the_operator_serves() -> None:
    (container,) = operator()["containers"]
    paths = {
        kind: container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "liveness", "readiness")
    }
    assert paths == {"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"}
    assert environment()["SPOTTRAIN_HTTP_PORT"] == str(container["ports"][0]["containerPort"])


def test_the_operator_stays_off_every_spot_node_that_it_knows() -> None:
    assert off_spot() == {mark.key: mark.values for mark in clouds.SPOT_MARKS}


def test_labels_of_ones_own_reach_the_operator_and_its_affinity() -> None:
    options = ("--set=spotLabels.pool=cheap,spotLabels.tier=low", "--set=onDemandLabels.pool=safe")
    assert environment(*options)["SPOTTRAIN_SPOT_LABELS"] == "pool=cheap,tier=low"
    assert environment(*options)["SPOTTRAIN_ON_DEMAND_LABELS"] == "pool=safe"
    assert off_spot(*options).items() >= {"pool": ("cheap",), "tier": ("low",)}.items()


def test_marks_of_leaving_nodes_reach_the_operator_and_a_slip_in_one_is_refused() -> None:
    options = ("--set=noticeMarks={taint:acme/leaving,-condition:PreemptionScheduled}",)
    assert (
        environment(*options)["SPOTTRAIN_NOTICE_MARKS"] == "taint:acme/leaving,-condition:PreemptionScheduled"
    )
    with pytest.raises(errors.LabError, match="noticeMarks"):
        render.template("--set=noticeMarks={acme/leaving}")


def test_c15_the_operator_is_told_of_agents_where_they_are_installed() -> None:
    """Or it would warn of nodes without one where nobody wants one."""
    assert "SPOTTRAIN_AGENTS" not in environment()
    assert environment("--set=agent.enabled=true")["SPOTTRAIN_AGENTS"] == "yes"


def test_namespaces_narrow_the_rights_to_roles_there() -> None:
    options = ("--set=namespaces={team-a,team-b}", "--set=rbac.aggregate=false")
    assert environment(*options)["SPOTTRAIN_NAMESPACES"] == "team-a,team-b"
    (cluster,) = of_kind("ClusterRole", *options)
    assert [(rule["resources"], rule["verbs"]) for rule in cluster["rules"]] == [
        (["nodes"], ["get", "list", "watch"]),
    ]
    roles = {one["metadata"]["namespace"]: one["rules"] for one in of_kind("Role", *options)}
    assert list(roles) == ["kube-node-lease", render.NAMESPACE, "team-a", "team-b"]
    (everywhere, *_) = of_kind("ClusterRole")
    assert roles["team-a"] == roles["team-b"]
    assert roles["team-b"] == [one for one in everywhere["rules"] if one not in cluster["rules"]]


def test_no_right_is_a_wildcard_and_none_reaches_secrets() -> None:
    rules = [rule for kind in ("ClusterRole", "Role") for one in of_kind(kind) for rule in one["rules"]]
    words = {word for rule in rules for key in ("apiGroups", "resources", "verbs") for word in rule[key]}
    assert words.isdisjoint({"*", "secrets", "finalizers", "impersonate", "escalate", "bind"})
    (with_maps,) = [one for one in of_kind("Role") if "configmaps" in str(one["rules"])]
    assert with_maps["metadata"]["name"] == "spottrain-pools"
    assert "configmaps" not in str(of_kind("ClusterRole"))


def test_a_digest_wins_over_the_tag() -> None:
    digest = f"sha256:{'0' * 64}"
    (container,) = operator(f"--set=image.digest={digest}")["containers"]
    assert container["image"] == f"docker.io/spottrain/operator@{digest}"


def test_the_operators_own_image_helps_beside_programs_unless_another_is_named() -> None:
    (container,) = operator("--set=image.tag=v9")["containers"]
    assert environment("--set=image.tag=v9")["SPOTTRAIN_HELPER_IMAGE"] == container["image"]
    assert environment("--set=helperImage=me/helper:1")["SPOTTRAIN_HELPER_IMAGE"] == "me/helper:1"


def test_metrics_are_offered_to_prometheus_on_the_services_port() -> None:
    (monitor,) = of_kind("ServiceMonitor", "--set=serviceMonitor.enabled=true")
    (service,) = of_kind("Service")
    assert service["metadata"]["labels"].items() >= monitor["spec"]["selector"]["matchLabels"].items()
    assert monitor["spec"]["endpoints"][0]["port"] == service["spec"]["ports"][0]["name"]


def test_the_jobs_own_metrics_are_found_by_the_port_that_their_worker_declares() -> None:
    (monitor,) = of_kind("PodMonitor", "--set=workerMonitor.enabled=true")
    assert monitor["spec"]["namespaceSelector"] == {"any": True}
    assert monitor["spec"]["selector"] == {
        "matchExpressions": [{"key": names.LABEL_JOB, "operator": "Exists"}]
    }
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert (endpoint["port"], endpoint["path"]) == (names.PROGRESS_PORT_NAME, "/metrics")
    both = of_kind("PodMonitor", "--set=workerMonitor.enabled=true", "--set=podMonitor.enabled=true")
    assert [one["metadata"]["name"] for one in both] == ["spottrain", "spottrain-workers"]
    (narrow,) = of_kind("PodMonitor", "--set=workerMonitor.enabled=true", "--set=namespaces={team-a}")
    assert narrow["spec"]["namespaceSelector"] == {"matchNames": ["team-a"]}


def test_d8_no_object_is_too_big_for_client_side_apply() -> None:
    sizes = {one["metadata"]["name"]: len(json.dumps(one)) for one in objects(*EVERYTHING)}
    assert {name: size for name, size in sizes.items() if size >= 200_000} == {}
