"""Dictionaries of the API into views."""

from typing import Any

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


def test_oom_in_any_container_is_seen() -> None:
    status = ended(1)
    status["containerStatuses"].append({"state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}})
    view = views.pod(pod(status))
    assert view.exit is not None
    assert view.exit.out_of_memory
    assert view.exit.code == 1


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
