"""The notice agent's part of the chart, rendered by the real helm."""

import re
from typing import Any

import pytest

from lab import errors
from manifests import render
from spottrain.agent import own_node, providers, settings
from spottrain.api import clouds, names

ON = "--set=agent.enabled=true"
NAME = "spottrain-agent"


def objects(*options: str) -> dict[str, dict[str, Any]]:
    """What belongs to the agent, by kind."""
    made = render.documents(render.template(ON, *options))
    return {one["kind"]: one for one in made if one["metadata"]["name"] == NAME}


def pod(*options: str) -> dict[str, Any]:
    spec: dict[str, Any] = objects(*options)["DaemonSet"]["spec"]["template"]["spec"]
    return spec


def environment(*options: str) -> dict[str, str]:
    (container,) = pod(*options)["containers"]
    return {one["name"]: one.get("value", "") for one in container["env"]}


def test_no_part_of_the_agent_is_there_unless_it_is_asked_for() -> None:
    names_made = {one["metadata"]["name"] for one in render.documents(render.template())}
    assert NAME not in names_made


def test_c1_the_agent_uses_the_nodes_network() -> None:
    """From a pod's own network a metadata service is hidden, or a hop too far."""
    assert pod()["hostNetwork"] is True


def test_c15_the_agent_tolerates_everything_and_wants_every_spot_node_that_the_operator_knows() -> None:
    assert pod()["tolerations"] == [{"operator": "Exists"}]
    affinity = pod("--set=spotLabels.pool=cheap")["affinity"]["nodeAffinity"]
    terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    wanted = {one["key"]: tuple(one["values"]) for term in terms for one in term["matchExpressions"]}
    assert wanted == {mark.key: mark.values for mark in clouds.SPOT_MARKS} | {"pool": ("cheap",)}
    assert {len(term["matchExpressions"]) for term in terms} == {1}


def test_the_agent_is_as_restricted_as_its_network_allows() -> None:
    (container,) = pod()["containers"]
    assert pod()["securityContext"]["runAsNonRoot"] is True
    assert "volumes" not in pod()
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_the_agents_rights_are_these_and_no_others() -> None:
    rules = [rule for kind in ("ClusterRole", "Role") for rule in objects()[kind]["rules"]]
    assert [(rule["resources"], rule["verbs"]) for rule in rules] == [
        (["nodes"], ["get", "watch", "patch"]),
        (["nodes/status"], ["patch"]),
        (["pods"], ["list", "delete"]),
        (["events"], ["create"]),
    ]


def test_the_policy_is_for_the_agents_account_and_binds() -> None:
    found = objects()
    account = f"system:serviceaccount:{render.NAMESPACE}:{pod()['serviceAccountName']}"
    (condition,) = found["ValidatingAdmissionPolicy"]["spec"]["matchConditions"]
    assert condition["expression"] == f'request.userInfo.username == "{account}"'
    assert found["ValidatingAdmissionPolicyBinding"]["spec"]["validationActions"] == ["Deny"]


def test_the_policy_speaks_of_what_the_agent_sets() -> None:
    policy = objects()["ValidatingAdmissionPolicy"]["spec"]
    text = " ".join(one["expression"] for one in policy["validations"])
    assert set(re.findall(r"one\.key != '(.*?)'", text)) == {names.TAINT_RECLAIM}
    assert set(re.findall(r"one\.type != '(.*?)'", text)) == {own_node.CONDITION}
    assert set(re.findall(r"key == '(.*?)'", text)) == {names.ANNOTATION_DRILL}
    (written,) = [one for one in policy["variables"] if one["name"] == "written"]
    assert re.findall(r"'(.*?)'", written["expression"]) == [names.ANNOTATION_RECLAIM, names.ANNOTATION_HINT]
    assert f"'{names.LABEL_JOB}' in" in text


def test_settings_reach_the_agent_in_its_own_words() -> None:
    options = ("--set=agent.provider=gcp", "--set-string=agent.noticeWindow=120", "--set=agent.port=9999")
    given = settings.parse(
        [], environment(*options) | {"SPOTTRAIN_NODE_NAME": "n1", "SPOTTRAIN_API_URL": "https://x"}
    )
    assert (given.provider, given.window, given.http_port, given.node) == ("gcp", 120.0, 9999, "n1")


def test_every_provider_can_be_chosen_and_no_other() -> None:
    for one in ("auto", *providers.NAMES):
        assert environment(f"--set=agent.provider={one}")["SPOTTRAIN_PROVIDER"] == one
    with pytest.raises(errors.LabError, match="at '/agent/provider': value must be one of"):
        render.template("--set=agent.provider=ibm")
