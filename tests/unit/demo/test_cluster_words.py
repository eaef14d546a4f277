"""What the demo makes of a cluster's nodes and of what the user passes, and the objects it applies."""

import pytest

from demo import current_target, install, manifests, play, target
from demo.errors import DemoError
from demo.facts import Attempt, Member
from demo.kubectl import Programs
from demo.manifests import Pace, Store, Workers
from demo.target import OperatorImage, Site
from spottrain.api import clouds, spec
from tests.unit.demo import stories

GPU = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
STORE = Store("s3://bucket/run-1", "http://10.98.0.1:7070", "us-east-1", {"AWS_ACCESS_KEY_ID": "test"})


def node(name: str, *taints: dict[str, str], **labels: str) -> dict[str, object]:
    """A Node object."""
    return {"metadata": {"name": name, "labels": labels}, "spec": {"taints": list(taints)}}


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("docker.io/spottrain/operator:0.1.0", ("docker.io/spottrain/operator", "0.1.0", "")),
        ("localhost:5000/operator", ("localhost:5000/operator", "", "")),
        ("localhost:5000/operator:1", ("localhost:5000/operator", "1", "")),
        ("ghcr.io/x/operator@sha256:ab", ("ghcr.io/x/operator", "", "sha256:ab")),
    ],
)
def test_an_image_name_is_split_as_the_chart_wants_it(name: str, parts: tuple[str, str, str]) -> None:
    image = OperatorImage(name)
    assert (image.repository, image.tag, image.digest) == parts


def test_control_planes_carry_no_workers() -> None:
    control = node(
        "kind-control-plane", {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
    )
    found = target.nodes([control, node("kind-worker")])
    assert found == (target.Node("kind-worker", clouds.Capacity.UNKNOWN),)


def test_a_taint_of_every_node_is_tolerated_and_one_of_some_is_not() -> None:
    other = {"key": "team", "value": "b", "effect": "NoSchedule"}
    assert target.common_tolerations(target.nodes([node("a", GPU), node("b", GPU, other)])) == (
        {"key": "nvidia.com/gpu", "operator": "Exists"},
    )
    assert target.common_tolerations(target.nodes([node("a", GPU), node("b")])) == ()


def test_the_state_of_a_node_is_no_taint_to_tolerate() -> None:
    cordoned = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    assert target.common_tolerations(target.nodes([node("a", cordoned)])) == ()


def test_what_current_needs_and_was_not_passed_is_one_sentence() -> None:
    with pytest.raises(DemoError) as caught:
        current_target.parse({"IMAGE": "x"})
    assert str(caught.value) == (
        "CLUSTER=current also needs WORKER_IMAGE=... (an image with torch, scikit-learn and spottrain); "
        "STORE_URI=... (where checkpoints go, such as s3://bucket/prefix): see docs/demo.md"
    )


def test_a_store_that_is_no_bucket_is_refused() -> None:
    with pytest.raises(DemoError, match="STORE_URI must be s3://bucket/prefix, not /tmp"):
        current_target.parse({"IMAGE": "x", "WORKER_IMAGE": "y", "STORE_URI": "/tmp"})


def test_current_takes_keys_and_region_from_the_environment() -> None:
    given = current_target.parse(
        {
            "IMAGE": "x",
            "WORKER_IMAGE": "y",
            "STORE_URI": "s3://bucket/prefix/",
            "STORE_ENDPOINT": "http://minio:9000",
            "AWS_REGION": "eu-west-1",
            "AWS_ACCESS_KEY_ID": "id",
            "AWS_SECRET_ACCESS_KEY": "key",
        }
    )
    keys = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key"}
    assert given.store == Store("s3://bucket/prefix", "http://minio:9000", "eu-west-1", keys)


def test_the_job_is_one_that_the_operator_accepts() -> None:
    workers = Workers(
        "image", gpus=1, host_path="/opt/torch", tolerations=({"key": "x", "operator": "Exists"},)
    )
    job = manifests.job("digits", workers, STORE, Pace(5.0, {"DIGITS_STEPS": "300"}))
    parsed = spec.parse(job["spec"])
    assert isinstance(parsed, spec.Spec)
    assert (parsed.workers, parsed.spot.floor, parsed.checkpoint.interval) == (3, 1, 5.0)
    assert parsed.checkpoint.uri == "s3://bucket/run-1/digits"


def test_without_a_host_path_the_image_is_left_to_bring_torch() -> None:
    job = manifests.job("digits", Workers("image"), Store("s3://bucket"), Pace(5.0, {}))
    pod = job["spec"]["template"]["spec"]
    assert [volume["name"] for volume in pod["volumes"]] == ["program"]
    assert [entry["name"] for entry in pod["containers"][0]["env"]] == ["OMP_NUM_THREADS"]
    assert "envFrom" not in pod["containers"][0]


def test_the_operators_pod_changes_with_its_images_content() -> None:
    site = Site(
        Programs({}),
        OperatorImage("docker.io/spottrain/operator:0.1.0", "ab12"),
        Workers("image"),
        STORE,
        target.nodes([node("a", GPU)]),
    )
    assert install.values(site) == {
        "image": {"repository": "docker.io/spottrain/operator", "tag": "0.1.0"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "podAnnotations": {"spottrain.dev/image-version": "ab12"},
    }


def test_workers_operator_and_agents_go_only_to_nodes_with_the_wanted_labels() -> None:
    workers = Workers("image", node_selector={"type": "real"})
    job = manifests.job("digits", workers, STORE, Pace(5.0, {}))
    site = Site(Programs({}), OperatorImage("operator:1"), workers, STORE)
    assert job["spec"]["template"]["spec"]["nodeSelector"] == {"type": "real"}
    assert install.values(site)["nodeSelector"] == {"type": "real"}
    agent = {"enabled": True, "provider": "aws", "nodeSelector": {"type": "real"}}
    assert install.values(site, "aws")["agent"] == agent


def gang(*nodes: str) -> Attempt:
    """An attempt with a member on each of these nodes."""
    return Attempt(1, tuple(Member(index, 1, f"d-{index}-1", node) for index, node in enumerate(nodes)))


def test_the_node_that_goes_is_not_rank_0s_and_not_one_of_a_rank_that_had_its_turn() -> None:
    assert play.victim(gang("od-1", "spot-1", "spot-2"), ()).index == 1
    assert play.victim(gang("od-1", "spot-1", "spot-2"), (1,)).index == 2
    assert play.victim(gang("od-1", "od-1", "spot-2"), ()).index == 2


def test_a_rank_alone_on_its_node_goes_first() -> None:
    assert play.victim(gang("od-1", "spot-1", "spot-1", "spot-2"), ()).index == 3


def test_where_all_share_rank_0s_node_the_demo_says_so() -> None:
    with pytest.raises(
        DemoError, match="no other rank has a node that rank 0 is not on: rank 0 on a, rank 1 on a"
    ):
        play.victim(gang("a", "a"), ())


def test_a_job_that_is_over_before_a_node_went_stops_the_demo() -> None:
    with pytest.raises(
        DemoError, match="digits completed before a node could be taken: give it more --steps"
    ):
        play.ripe(stories.as_it_should_be(), after=0)


def test_a_node_goes_when_every_rank_is_half_an_interval_past_a_save() -> None:
    """A step takes 0.1 s and the interval is 5 s, so half of it is 25 steps."""
    early = stories.attempt(1, range(67), began=stories.START, saves=(41,))
    late = stories.attempt(1, range(68), began=stories.START, saves=(41,))
    assert play.ripe(stories.run(early, phase="Running"), after=0) is None
    assert play.ripe(stories.run(late, phase="Running"), after=0) == late


def test_the_second_node_goes_from_a_later_attempt_whichever_number_it_has() -> None:
    first = stories.attempt(1, range(80), began=stories.START, saves=(41,))
    fourth = stories.attempt(4, range(80, 160), began=stories.START, saves=(120,))
    assert play.ripe(stories.run(first, phase="Running"), after=1) is None
    assert play.ripe(stories.run(first, fourth, phase="Running"), after=1) == fourth


def test_how_a_run_stands_is_one_line() -> None:
    one = stories.attempt(1, range(50), began=stories.START, saves=(41,))
    assert play.standing(stories.run(one)) == (
        "digits: attempt 1, 3 of 3 workers have started, step 49, saved step 41"
    )
    assert play.standing(stories.run(phase="")) == "digits: not seen by the operator yet"
