"""Caches of pods and nodes that snapshots are taken from."""

import datetime as dt
from typing import Any

from aiohttp import web

from spottrain.kube import client as clients
from spottrain.kube import leases, observe, reflector, tails, views, windows
from spottrain.plan import snapshot as snap
from tests.unit.kube import local

KEY = ("t", "tr")


def pod(
    attempt: int,
    index: int = 0,
    uid: str = "",
    *,
    owner: str = "j1",
    node: str = "n1",
    phase: str = "Running",
) -> dict[str, Any]:
    return {
        "metadata": {
            "name": f"tr-{index}-{attempt}",
            "namespace": "t",
            "uid": uid or f"p-{index}-{attempt}",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {
                "spottrain.dev/job": "tr",
                "spottrain.dev/index": str(index),
                "spottrain.dev/attempt": str(attempt),
            },
            "ownerReferences": [{"controller": True, "uid": owner}],
        },
        "spec": {"nodeName": node},
        "status": {"phase": phase},
    }


def node(name: str, uid: str = "", version: int = 1) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "uid": uid or f"u-{name}",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-01-01T00:00:00Z",
        }
    }


def world(client: clients.Client) -> observe.World:
    """Empty caches of one operator."""
    pods, nodes = observe.Pods(), observe.Nodes(snap.Settings())
    return observe.World(
        client=client,
        job_caches=(reflector.Reflector(client, clients.JOBS, lambda *_: None),),
        node_cache=reflector.Reflector(client, clients.NODES, lambda raw, gone: nodes.put(raw, gone=gone)),  # type: ignore[arg-type]
        pods=pods,
        nodes=nodes,
        leases=leases.Leases(client, lambda: pods.at_work, lambda _: None),
        tails=tails.Tails(client, lambda _: None),
        windows=windows.Windows(lambda *_: None),
    )


def moment() -> observe.Moment:
    return observe.Moment(
        now=dt.datetime(2026, 1, 1, 0, 1, tzinfo=dt.UTC),
        fresh_id="f",
        settings=snap.Settings(),
        refusal=None,
    )


def known() -> observe.Pods:
    """A cache that knows the Job of the SpotTrainingJob."""
    pods = observe.Pods()
    pods.own(KEY, "u", "j1")
    return pods


def batch(uid: str, *, version: str = "1") -> dict[str, Any]:
    """A Job of that UID; of a SpotTrainingJob's that has `u`."""
    owner = {"uid": "u", "controller": True}
    metadata = {
        "namespace": "t",
        "name": "tr",
        "uid": uid,
        "resourceVersion": version,
        "ownerReferences": [owner],
    }
    return {"metadata": metadata, "spec": {}}


def test_a_pod_that_went_is_remembered_as_it_was_last_seen() -> None:
    pods = known()
    assert pods.put(pod(1), gone=False) == KEY
    pods.put(pod(1), gone=True)
    assert pods.present(KEY, "j1") == ()
    assert [one.name for one in pods.departed(KEY, "u")] == ["tr-0-1"]


def test_a_pod_was_asked_to_stop_when_it_was_first_although_its_last_deletion_comes_after_its_end() -> None:
    """The kubelet's own DELETE, with no grace left, moves deletionTimestamp: exit 0 in between is a save."""
    pods, raw = known(), pod(1)
    raw["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:40Z", "deletionGracePeriodSeconds": 30}
    pods.put(raw, gone=False)
    ended = {"exitCode": 0, "finishedAt": "2026-01-01T00:00:11Z"}
    statuses = [{"name": "main", "state": {"terminated": ended}}]
    last = {**raw, "status": {"phase": "Succeeded", "containerStatuses": statuses}}
    last["spec"] = {**raw["spec"], "containers": [{"name": "main"}]}
    moved = {"deletionTimestamp": "2026-01-01T00:00:12Z", "deletionGracePeriodSeconds": 0}
    last["metadata"] = {**raw["metadata"], **moved}
    pods.put(last, gone=False)
    pods.put(last, gone=True)
    (seen,) = pods.departed(KEY, "u")
    assert seen.asked_to_stop
    assert not views.pod(last).asked_to_stop, "its last state alone doesn't tell"


def test_pods_of_another_owner_are_not_the_jobs() -> None:
    """A deleted and re-applied job of the same name has another Job."""
    pods = observe.Pods()
    pods.put(pod(1), gone=False)
    assert pods.present(KEY, "j2") == ()


async def _nothing(_: web.Request) -> web.StreamResponse:
    return local.refused(404)


def test_what_a_machine_was_is_still_known_when_it_is_gone() -> None:
    async def body() -> None:
        async with local.server(_nothing) as client:
            one = world(client)
            labelled = node("n1")
            labelled["metadata"]["labels"] = {"topology.kubernetes.io/zone": "zone-a"}
            one.nodes.put(labelled, gone=False)
            one.nodes.put(labelled, gone=True)
            one.pods.put(pod(1), gone=False)
            raw = {"metadata": {"namespace": "t", "name": "tr", "uid": "u"}}
            assert one.snapshot(raw, moment()).gone_nodes == {}, "another Job's pods are not asked for"
            one.job_caches[0].learn(batch("j1"))
            found = one.snapshot(raw, moment())
            assert {name: one.zone for name, one in found.gone_nodes.items()} == {"n1": "zone-a"}

    local.run(body())


def test_departed_pods_are_kept_for_two_attempts_only() -> None:
    pods = known()
    for attempt in range(1, 30):
        for index in range(3):
            pods.put(pod(attempt, index), gone=True)
    assert {one.attempt for one in pods.departed(KEY, "u")} == {28, 29}


def test_jobs_are_found_by_the_nodes_of_their_pods() -> None:
    pods = observe.Pods()
    pods.put(pod(1), gone=False)
    assert pods.jobs_on("n1") == [KEY]
    assert pods.jobs_on("n2") == []
    assert pods.nodes_of(KEY) == {"n1"}


def test_departed_pods_of_a_namesake_do_not_push_out_the_jobs_own() -> None:
    """The namesake was at attempt 30 when it was deleted; the one applied anew is at its first."""
    pods = observe.Pods()
    pods.own(KEY, "u0", "j0")
    pods.put(pod(30, owner="j0"), gone=True)
    pods.own(KEY, "u", "j1")
    pods.put(pod(1, owner="j1"), gone=True)
    assert [one.name for one in pods.departed(KEY, "u")] == ["tr-0-1"]
    assert pods.departed(KEY, "u0") == ()


def test_pods_that_went_with_a_job_that_somebody_deleted_were_the_jobs_own() -> None:
    """Such a worker may be recorded nowhere yet: forgotten, it would be made again in the same attempt."""

    async def body() -> None:
        async with local.server(_nothing) as client:
            one = world(client)
            raw = {"metadata": {"namespace": "t", "name": "tr", "uid": "u"}}
            one.job_caches[0].learn(batch("j1"))
            one.pods.put(pod(1), gone=False)
            one.snapshot(raw, moment())
            one.pods.put(pod(1), gone=True)
            one.job_caches[0].learn(batch("j2", version="2"))
            assert [it.name for it in one.snapshot(raw, moment()).departed] == ["tr-0-1"]
            namesake = {"metadata": {**raw["metadata"], "uid": "u2"}}
            assert one.snapshot(namesake, moment()).departed == ()

    local.run(body())


def test_nodes_are_at_work_while_a_worker_on_them_has_not_ended() -> None:
    pods = observe.Pods()
    pods.put(pod(1, 0, node="n1"), gone=False)
    pods.put(pod(1, 1, node="n1"), gone=False)
    pods.put(pod(1, 2, node="n2"), gone=False)
    assert pods.at_work == {"n1", "n2"}
    pods.put(pod(1, 0, node="n1", phase="Failed"), gone=False)
    pods.put(pod(1, 2, node="n2"), gone=True)
    assert pods.at_work == {"n1"}
    pods.put(pod(1, 1, node="n1"), gone=True)
    assert pods.at_work == set()


def test_nodes_that_carry_workers_are_known_before_the_first_lease_is_read() -> None:
    """After a restart in the middle of an outage the brake must hold in the first pass."""

    async def answer(_: web.Request) -> web.StreamResponse:
        return local.refused(404)

    async def body() -> None:
        async with local.server(answer) as client:
            seen = world(client)
            for index in range(3):
                seen.nodes.put(node(f"n{index}"), gone=False)
                seen.pods.put(pod(1, index, node=f"n{index}"), gone=False)
            snapshot = seen.snapshot({"metadata": {"namespace": "t", "name": "tr", "uid": "u"}}, moment())
            assert snapshot.suspicion.startswith("3 of 3 nodes that carry workers are silent at once")

    local.run(body())


def test_a_node_is_asked_for_again_when_a_new_pod_names_it() -> None:
    """It was gone once; a new machine has taken its name, and the watch of nodes is late."""
    there: list[dict[str, Any]] = []
    asked = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        return web.json_response(there[0]) if there else local.refused(404)

    async def body() -> None:
        async with local.server(answer) as client:
            seen = world(client)
            seen.pods.put(pod(1), gone=False)
            await seen.look_for_absent_nodes(KEY)
            await seen.look_for_absent_nodes(KEY)
            assert asked == ["/api/v1/nodes/n1"]
            there.append(node("n1"))
            seen.pods.put(pod(2), gone=False)
            await seen.look_for_absent_nodes(KEY)
            assert set(seen.nodes.by_name) == {"n1"}

    local.run(body())


def test_a_pod_that_comes_while_nodes_are_asked_for_is_looked_at_too() -> None:
    late: list[Any] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        name = request.path.rpartition("/")[2]
        if name == "n1":
            late[0].pods.put(pod(1, 1, node="n2"), gone=False)
            return local.refused(404)
        return web.json_response(node(name))

    async def body() -> None:
        async with local.server(answer) as client:
            seen = world(client)
            late.append(seen)
            seen.pods.put(pod(1, 0, node="n1"), gone=False)
            await seen.look_for_absent_nodes(KEY)
            assert set(seen.nodes.by_name) == {"n2"}

    local.run(body())


def test_a_late_word_of_an_old_machine_does_not_remove_the_new_one_of_its_name() -> None:
    nodes = observe.Nodes(snap.Settings())
    nodes.put(node("n1", uid="new"), gone=False)
    assert nodes.put(node("n1", uid="old"), gone=True) is False
    assert set(nodes.by_name) == {"n1"}


def test_a_node_is_seen_as_it_is_now_and_not_as_it_was() -> None:
    nodes = observe.Nodes(snap.Settings())
    nodes.put(node("n1", uid="a"), gone=False)
    first = nodes.seen("n1", watched=True, silent=False)
    assert nodes.seen("n1", watched=True, silent=False) is first
    assert nodes.seen("n1", watched=True, silent=True).silent
    nodes.put(node("n1", uid="b"), gone=False)
    assert nodes.seen("n1", watched=True, silent=True).uid == "b"


def test_live_pods_of_a_deleted_job_are_left_over_and_orphans_are_not() -> None:
    pods = observe.Pods()
    pods.put(pod(1, 0, owner="j0"), gone=False)
    pods.put(pod(1, 1, owner="j0", phase="Failed"), gone=False)
    pods.put(pod(1, 2, owner="j1"), gone=False)
    orphan = pod(1, 3)
    del orphan["metadata"]["ownerReferences"]
    pods.put(orphan, gone=False)
    assert [one.name for one in pods.leftover(KEY, "j1")] == ["tr-0-1"]
