"""Dictionaries of the API into views."""

import datetime as dt
from typing import Any

import pytest

from spottrain.api import prices
from spottrain.kube import views
from spottrain.plan import snapshot as snap


def pod(status: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "tr-0-1",
            "namespace": "t",
            "uid": "p",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {
                "spottrain.dev/job": "tr",
                "spottrain.dev/index": "0",
                "spottrain.dev/attempt": "1",
            },
            "annotations": {"spottrain.dev/attempt-id": "abc"},
            **metadata,
        },
        "spec": {"terminationGracePeriodSeconds": 28},
        "status": status or {},
    }


def ended(code: int, message: str = "", reason: str = "Error") -> dict[str, Any]:
    state = {"exitCode": code, "reason": reason, "message": message, "finishedAt": "2026-01-01T00:10:00Z"}
    return {"phase": "Failed", "containerStatuses": [{"state": {"terminated": state}}]}


def test_the_librarys_last_word_is_read() -> None:
    view = views.pod(pod(ended(75, '{"spottrain": 1, "state": "preempted", "step": 40}')))
    assert view.said == snap.Words("preempted", 40)
    more = '{"spottrain": 1, "state": "preempted", "step": 40, "savedTime": 1767225600.25, "resumedFrom": 20}'
    moment = dt.datetime(2026, 1, 1, 0, 0, 0, 250000, tzinfo=dt.UTC)
    assert views.pod(pod(ended(75, more))).said == snap.Words("preempted", 40, None, None, moment, 20)


def test_another_programs_last_word_is_none_of_ours() -> None:
    for text in ("boom", "{}", "[1]", '{"state": "finished"}', '{"spottrain": 1', "null"):
        assert views.pod(pod(ended(1, text))).said is None


def test_no_last_word_of_a_program_can_harm_the_operator() -> None:
    """Nesting as deep as the message is long breaks the parser, and with it every job of the cluster."""
    assert views.pod(pod(ended(1, "[" * 4096))).said is None


def test_a_step_that_the_status_cannot_hold_is_none() -> None:
    for step in ("-1", str(2**63), "true", "1.5", '"7"'):
        view = views.pod(pod(ended(75, f'{{"spottrain": 1, "state": "preempted", "step": {step}}}')))
        assert view.said == snap.Words("preempted", None)


def test_a_deleted_pods_grace_is_that_of_its_deletion() -> None:
    view = views.pod(pod(deletionTimestamp="2026-01-01T00:00:30Z", deletionGracePeriodSeconds=10))
    assert (view.grace, view.deleting is not None) == (10.0, True)
    assert views.pod(pod()).grace == 28.0


def test_an_exit_before_the_deletion_was_asked_for_was_not_asked_for() -> None:
    after = pod(ended(0), deletionTimestamp="2026-01-01T00:20:28Z", deletionGracePeriodSeconds=28)
    before = pod(ended(0), deletionTimestamp="2026-01-01T00:10:20Z", deletionGracePeriodSeconds=28)
    assert views.pod(after).asked_to_stop is False
    assert views.pod(before).asked_to_stop is True


@pytest.mark.parametrize(
    ("before", "ran"),
    [
        ({"restartCount": 0, "lastState": {}}, False),
        ({"restartCount": 1, "lastState": {}}, True),
        ({"restartCount": 0, "lastState": {"terminated": {"exitCode": 137}}}, True),
    ],
    ids=["never started", "forgotten by the runtime", "gone with its machine"],
)
def test_a_container_of_which_its_kubelet_knows_nothing_may_never_have_run(
    before: dict[str, Any], ran: bool
) -> None:
    """The shapes of kubelet 1.34, for a pod that was deleted."""
    end = {"exitCode": 137, "reason": "ContainerStatusUnknown", "startedAt": None, "finishedAt": None}
    one = {"name": "main", "state": {"terminated": end}, **before}
    raw = pod({"phase": "Failed", "containerStatuses": [one]})
    raw["spec"]["containers"] = [{"name": "main"}]
    view = views.pod(raw)
    assert view.exit is not None
    assert view.exit.ran is ran


def test_oom_in_any_container_is_seen() -> None:
    status = ended(1)
    status["containerStatuses"].append({"state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}})
    view = views.pod(pod(status))
    assert view.exit is not None
    assert view.exit.out_of_memory
    assert view.exit.code == 1


def running_beside(main: dict[str, Any], *, phase: str = "Running", **metadata: Any) -> dict[str, Any]:
    """A worker with a mesh's proxy, which a webhook has put first, and a native sidecar."""
    proxy = {"name": "proxy", "state": {"running": {}}}
    raw = pod(
        {"phase": phase, "containerStatuses": [proxy, {"name": "trainer", "state": main}]},
        annotations={"kubectl.kubernetes.io/default-container": "trainer"},
        **metadata,
    )
    raw["spec"]["containers"] = [{"name": "proxy"}, {"name": "trainer"}]
    raw["spec"]["initContainers"] = [{"name": "sync", "restartPolicy": "Always"}, {"name": "setup"}]
    return raw


def terminated(code: int, reason: str = "Error", message: str = "") -> dict[str, Any]:
    return {
        "terminated": {
            "exitCode": code,
            "reason": reason,
            "message": message,
            "finishedAt": "2026-01-01T00:10:00Z",
        }
    }


@pytest.mark.parametrize(("code", "outcome"), [(0, "Succeeded"), (1, "Failed")])
def test_the_main_containers_end_decides_though_a_proxy_runs_on(code: int, outcome: str) -> None:
    view = views.pod(running_beside(terminated(code)))
    assert (view.outcome, view.running, view.ended) == (outcome, False, False)
    assert view.exit is not None
    assert view.exit.code == code


def test_while_the_main_container_runs_so_does_its_worker() -> None:
    view = views.pod(running_beside({"running": {}}))
    assert (view.outcome, view.running, view.exit) == ("", True, None)


def test_the_proxys_end_is_not_the_workers() -> None:
    raw = running_beside({"running": {}})
    raw["status"]["containerStatuses"][0]["state"] = terminated(1)
    assert views.pod(raw).outcome == ""


def test_a_failed_helper_does_not_undo_that_the_main_container_finished() -> None:
    raw = running_beside(terminated(0, "Completed"), phase="Failed")
    raw["status"]["containerStatuses"][0]["state"] = terminated(137)
    assert views.pod(raw).outcome == "Succeeded"


def test_exit_0_in_a_pod_that_its_kubelet_stopped_is_no_success() -> None:
    raw = running_beside(terminated(0, "Completed"), phase="Failed")
    raw["status"]["reason"] = "DeadlineExceeded"
    assert views.pod(raw).outcome == "Failed"


def test_a_native_sidecars_end_is_never_the_reason() -> None:
    raw = running_beside({"waiting": {}}, phase="Failed")
    raw["status"]["initContainerStatuses"] = [
        {"name": "sync", "state": terminated(137, "OOMKilled")},
        {"name": "setup", "state": terminated(3)},
    ]
    view = views.pod(raw)
    assert view.exit is not None
    assert (view.exit.code, view.exit.out_of_memory) == (3, False)


def test_without_an_annotation_the_first_container_decides() -> None:
    raw = running_beside(terminated(0))
    raw["metadata"]["annotations"] = {"kubectl.kubernetes.io/default-container": "no such one"}
    assert views.main_container(raw) == "proxy"


def test_the_last_word_is_the_main_containers() -> None:
    raw = running_beside(terminated(75, message='{"spottrain": 1, "state": "preempted", "step": 40}'))
    raw["status"]["containerStatuses"][0]["state"] = terminated(0, message='{"spottrain": 1, "state": "x"}')
    assert views.pod(raw).said == snap.Words("preempted", 40)


@pytest.mark.parametrize(
    ("waits", "text"),
    [
        (
            {"reason": "CreateContainerConfigError", "message": 'secret "s3" not found'},
            'trainer: CreateContainerConfigError: secret "s3" not found',
        ),
        ({"reason": "ImagePullBackOff"}, "trainer: ImagePullBackOff"),
        ({"reason": "ContainerCreating"}, ""),
        ({"reason": "PodInitializing"}, ""),
        ({}, ""),
    ],
)
def test_a_container_that_waits_in_vain_says_why(waits: dict[str, str], text: str) -> None:
    waiting = {"name": "trainer", "state": {"waiting": waits}}
    assert views.pod(pod({"phase": "Pending", "containerStatuses": [waiting]})).waiting == text


SANDBOX = {"type": "PodReadyToStartContainers", "lastTransitionTime": "2026-01-01T00:05:00Z"}


@pytest.mark.parametrize(
    ("phase", "sandbox", "waits", "stranded"),
    [
        ("Pending", "False", {}, True),
        ("Pending", "True", {}, False),  # between made and started, as every container is for a moment
        ("Pending", "False", {"reason": "ContainerCreating"}, False),
        ("Failed", "False", {}, False),
    ],
)
def test_a_container_that_waits_without_a_reason_in_a_lost_sandbox_is_stranded(
    phase: str, sandbox: str, waits: dict[str, str], *, stranded: bool
) -> None:
    status = {
        "phase": phase,
        "conditions": [{**SANDBOX, "status": sandbox}],
        "containerStatuses": [{"name": "trainer", "state": {"waiting": waits}}],
    }
    since = dt.datetime(2026, 1, 1, 0, 5, tzinfo=dt.UTC) if stranded else None
    assert views.pod(pod(status)).stranded == since


def test_a_foreign_pod_under_our_label_is_no_worker() -> None:
    stranger = pod()
    stranger["metadata"]["labels"] = {"spottrain.dev/job": "tr", "spottrain.dev/index": "x"}
    assert not views.is_worker(stranger)
    assert views.is_worker(pod())


def node(**parts: Any) -> dict[str, Any]:
    metadata = {"name": "n", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
    metadata |= parts.pop("metadata", {})
    return {"metadata": metadata, "spec": {}, "status": {}, **parts}


def test_a_node_that_never_reported_is_not_ready_since_it_was_made() -> None:
    view = views.node(node(), snap.Settings())
    assert not view.ready
    assert view.ready_since is not None


def test_our_agents_mark_gives_cause_and_deadline() -> None:
    text = '{"cause": "aws-spot", "deadline": "2026-01-01T00:02:00Z", "event": "e"}'
    view = views.node(node(metadata={"annotations": {"spottrain.dev/reclaim": text}}), snap.Settings())
    assert view.notice == "aws-spot"
    assert view.deadline is not None


def test_a_malformed_mark_is_a_notice_all_the_same() -> None:
    for text in ("yes", "[]", '{"deadline": 5}', '{"deadline": "soon"}', "[" * 9999):
        view = views.node(node(metadata={"annotations": {"spottrain.dev/reclaim": text}}), snap.Settings())
        assert view.notice == "notice"
        assert view.deadline is None


def test_other_handlers_marks_are_notices() -> None:
    taint = {"key": "aws-node-termination-handler/spot-itn", "value": "e", "effect": "NoSchedule"}
    condition = {"type": "PreemptionScheduled", "status": "True", "reason": "SpotEvictionIncoming"}
    label = {"qos.coreweave.cloud/pending-preemption": "true"}
    settings = snap.Settings()
    assert views.node(node(spec={"taints": [taint]}), settings).notice == taint["key"]
    assert views.node(node(status={"conditions": [condition]}), settings).notice == "PreemptionScheduled"
    assert views.node(node(metadata={"labels": label}), settings).notice
    assert views.node(node(), settings).notice == ""


def test_a_pod_that_was_trimmed_reads_the_same() -> None:
    """Its log is asked for by the name of a container; what is dropped is most of it."""
    whole = pod(ended(1), managedFields=[{"manager": "kwok"}])
    containers = [{"name": "main", "image": "i", "env": [{"name": "A", "value": "b"}]}]
    whole["spec"] |= {"nodeName": "n", "containers": containers, "affinity": {"nodeAffinity": {}}}
    trimmed = views.trimmed_pod(whole)
    assert views.pod(trimmed) == views.pod(whole)
    assert (trimmed["spec"]["containers"], trimmed["metadata"].get("managedFields")) == (
        [{"name": "main"}],
        None,
    )
    assert "affinity" not in trimmed["spec"]


def beside_our_sidecar(
    main: dict[str, Any], sidecar: dict[str, Any], phase: str = "Running"
) -> dict[str, Any]:
    """A worker whose checkpoints our sidecar stores."""
    raw = running_beside(main, phase=phase)
    raw["spec"]["initContainers"] = [{"name": "spottrain-watch", "restartPolicy": "Always"}]
    raw["status"]["initContainerStatuses"] = [{"name": "spottrain-watch", "state": sidecar}]
    return raw


STORED = '{"spottrain": 1, "state": "%s", "step": 40, "savedStep": 40, "saveSeconds": 2.5}'


def test_a_worker_has_not_finished_before_its_sidecar_has_stored_what_it_saved_last() -> None:
    """Nobody may call the job complete while its last checkpoint is on a node's disk alone."""
    view = views.pod(beside_our_sidecar(terminated(0), {"running": {}}))
    assert (view.outcome, view.running, view.flushing) == ("", True, True)
    view = views.pod(beside_our_sidecar(terminated(0), terminated(0), "Succeeded"))
    assert (view.outcome, view.running, view.flushing) == ("Succeeded", False, False)


def test_a_worker_that_failed_has_failed_whatever_its_sidecar_does() -> None:
    view = views.pod(beside_our_sidecar(terminated(1), {"running": {}}))
    assert (view.outcome, view.running) == ("Failed", False)


def test_our_sidecar_never_decides_however_it_ends() -> None:
    for code, phase in ((0, "Running"), (1, "Running")):
        view = views.pod(beside_our_sidecar({"running": {}}, terminated(code), phase))
        assert (view.outcome, view.running, view.exit) == ("", True, None)
    view = views.pod(beside_our_sidecar(terminated(0), terminated(137, "OOMKilled"), "Succeeded"))
    assert view.exit is not None
    assert (view.outcome, view.exit.out_of_memory) == ("Succeeded", False)


def test_our_sidecars_last_word_tells_what_is_stored_and_nothing_of_the_program() -> None:
    for said, state in (("stored", ""), ("finished", ""), ("unsaved", "unsaved")):
        raw = beside_our_sidecar(terminated(143), terminated(0, message=STORED % said), "Failed")
        assert views.pod(raw).said == snap.Words(state, 40, 40, 2.5)


def test_what_the_agent_of_a_node_says_of_itself_is_known_with_its_time() -> None:
    said = {"type": "SpottrainNotices", "status": "True", "reason": "Armed"}
    moment = "2026-01-01T12:00:00Z"
    found = views.node(node(status={"conditions": [said | {"lastHeartbeatTime": moment}]}), snap.Settings())
    assert (found.listens, found.listened) == ("Armed", dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC))
    silent = views.node(node(status={"conditions": [said]}), snap.Settings())
    assert (silent.listens, silent.listened) == ("Armed", None)
    none = views.node(node(), snap.Settings())
    assert (none.listens, none.listened) == ("", None)


@pytest.mark.parametrize("text", ["3", "[]", "{", '{"since": 1}', '{"since": "later"}', '{"cause": "x"}'])
def test_a_notice_that_does_not_say_when_it_came_is_not_timed(text: str) -> None:
    found = views.node(node(metadata={"annotations": {"spottrain.dev/reclaim": text}}), snap.Settings())
    assert found.notice
    assert found.noticed is None


def test_when_a_notice_came_is_known_from_its_mark() -> None:
    text = '{"cause": "Preempted", "since": "2026-01-01T12:00:00Z"}'
    found = views.node(node(metadata={"annotations": {"spottrain.dev/reclaim": text}}), snap.Settings())
    assert found.noticed == dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)


def test_a_pod_has_stopped_when_the_last_of_its_containers_has() -> None:
    """A proxy that runs on is on the node, and is paid for."""
    done = {"terminated": {"exitCode": 0, "finishedAt": "2026-01-01T00:10:00Z"}}
    later = {"terminated": {"exitCode": 0, "finishedAt": "2026-01-01T00:10:09Z"}}
    states: list[tuple[dict[str, Any], ...]] = [
        (done, later),
        (done, {"running": {}}),
        (done, {"waiting": {}}),
        (),
    ]
    found = [
        views.pod(pod({"containerStatuses": [{"state": one} for one in some]})).stopped for some in states
    ]
    assert found == [dt.datetime(2026, 1, 1, 0, 10, 9, tzinfo=dt.UTC), None, None, None]


def test_a_nodes_prices_are_read_from_labels_and_annotations() -> None:
    """Node groups of some clouds have labels alone."""
    metadata = {
        "name": "n",
        "uid": "u",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"spottrain.dev/price-per-worker-hour": "1.10", "karpenter.sh/capacity-type": "spot"},
        "annotations": {"spottrain.dev/on-demand-price-per-worker-hour": "3.67"},
    }
    view = views.node({"metadata": metadata}, snap.Settings())
    assert (view.rate, view.rate_problem) == (prices.Rate(prices.parse("1.10"), prices.parse("3.67")), "")
    metadata["annotations"] = {"spottrain.dev/on-demand-price-per-worker-hour": "much"}
    view = views.node({"metadata": metadata}, snap.Settings())
    assert view.rate is None
    assert '"much" is not a price per worker-hour' in view.rate_problem
