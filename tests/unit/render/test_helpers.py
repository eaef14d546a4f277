"""The containers beside a program that doesn't use the library."""

from typing import Any

from spottrain.api import clouds, spec
from spottrain.plan import actions
from spottrain.plan import snapshot as snap
from spottrain.render import helpers, identity, job, pod

JOB = identity.Identity("t", "tr", "u1")
DIRECTORY = "/checkpoints"


def wishes(template: dict[str, Any], **changes: Any) -> spec.Spec:
    checkpoint = spec.Checkpoint("s3://b/p", directory=DIRECTORY)
    return spec.Spec(workers=3, template=template, checkpoint=checkpoint, **changes)


def rendered(
    container: dict[str, Any] | None = None, *, index: int = 0, mode: spec.Mode = spec.Mode.GANG, **rest: Any
) -> dict[str, Any]:
    """The spec of the pod; `rest` is what else its template says."""
    template = {"spec": {"containers": [{"name": "c", "image": "i", **(container or {})}], **rest}}
    mold = pod.Mold(JOB, wishes(template, mode=mode), "j1", template, snap.Settings(helper_image="ours:1"))
    overlay = actions.Overlay(index=index, attempt=2, attempt_id="abc", ask=clouds.Ask.SPOT, grace=26)
    made: dict[str, Any] = pod.render(mold, overlay)["spec"]
    return made


def named(one: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(c for c in [*one["initContainers"], *one["containers"]] if c["name"] == name)
    return found


def environment(container: dict[str, Any]) -> dict[str, str]:
    return {entry["name"]: entry.get("value") for entry in container["env"]}


def mounts(container: dict[str, Any]) -> dict[str, str]:
    return {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}


def test_worker_0_restores_and_is_watched_the_others_restore() -> None:
    for index, expected in (
        (0, [("spottrain-restore", "restore", None), ("spottrain-watch", "watch", "Always")]),
        (1, [("spottrain-restore", "restore", None)]),
    ):
        found = rendered(index=index)["initContainers"]
        assert [(one["name"], one["command"][-1], one.get("restartPolicy")) for one in found] == expected
        assert {one["image"] for one in found} == {"ours:1"}


def test_every_index_that_runs_by_itself_is_watched() -> None:
    found = rendered(index=2, mode=spec.Mode.INDEPENDENT)["initContainers"]
    assert [one["name"] for one in found] == ["spottrain-restore", "spottrain-watch"]


def test_the_templates_own_init_containers_come_first() -> None:
    """They may fetch data while the attempt before still saves."""
    one = rendered(initContainers=[{"name": "data", "image": "d"}])
    assert [c["name"] for c in one["initContainers"]] == ["data", "spottrain-restore", "spottrain-watch"]


def test_all_three_share_one_empty_volume_at_that_path() -> None:
    one = rendered()
    for name in ("c", "spottrain-restore", "spottrain-watch"):
        assert mounts(named(one, name))[DIRECTORY] == helpers.VOLUME
    assert {"name": helpers.VOLUME, "emptyDir": {}} in one["volumes"]


def test_a_volume_that_the_program_mounts_there_is_used() -> None:
    own = [{"name": "fast", "mountPath": f"{DIRECTORY}/", "subPath": "x"}]
    one = rendered({"volumeMounts": own}, volumes=[{"name": "fast", "emptyDir": {"sizeLimit": "1Ti"}}])
    assert own[0] in named(one, "spottrain-watch")["volumeMounts"]
    assert helpers.VOLUME not in {volume["name"] for volume in one["volumes"]}


def test_they_have_the_programs_credentials_and_volumes_but_not_its_paths() -> None:
    own = [{"name": name, "value": "x"} for name in ("AWS_REGION", "PYTHONPATH", "PATH")]
    secret = {"name": "key", "mountPath": "/var/key", "mountPropagation": "HostToContainer"}
    source = [{"secretRef": {"name": "store"}}]
    one = rendered({"env": own, "envFrom": source, "volumeMounts": [secret]})
    for name in ("spottrain-restore", "spottrain-watch"):
        helper = named(one, name)
        assert environment(helper).items() >= {"AWS_REGION": "x", "SPOTTRAIN_ATTEMPT_ID": "abc"}.items()
        assert environment(helper).keys().isdisjoint({"PYTHONPATH", "PATH"})
        assert (helper["envFrom"], mounts(helper)["/var/key"]) == (source, "key")
        assert mounts(helper)["/etc/spottrain"] == pod.PODINFO_VOLUME
        assert not any("mountPropagation" in mount for mount in helper["volumeMounts"])


def test_the_grace_is_shared_out_and_the_sidecar_tells_the_progress() -> None:
    one = rendered()
    program, sidecar = environment(named(one, "c")), environment(named(one, "spottrain-watch"))
    assert one["terminationGracePeriodSeconds"] == 26
    assert program["SPOTTRAIN_GRACE_SECONDS"] == program["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"] == "13"
    assert sidecar["SPOTTRAIN_GRACE_SECONDS"] == "13"
    assert "SPOTTRAIN_PROGRESS_PORT" not in program
    assert sidecar["SPOTTRAIN_PROGRESS_PORT"] == "29580"
    assert program["SPOTTRAIN_CHECKPOINT_DIRECTORY"] == sidecar["SPOTTRAIN_CHECKPOINT_DIRECTORY"] == DIRECTORY


def test_they_run_as_the_programs_user_where_it_is_said() -> None:
    """And never with more rights than that needs, which passes the standard `restricted`."""
    one = rendered({"securityContext": {"runAsUser": 1000, "privileged": True}})
    assert named(one, "spottrain-watch")["securityContext"] == {
        "runAsUser": 1000,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    for rest in ({"runAsUser": 1000}, {"runAsNonRoot": True}):
        helper = named(rendered(securityContext=rest), "spottrain-restore")
        assert helper["securityContext"].keys() == {"allowPrivilegeEscalation", "capabilities"}


def test_where_only_the_image_names_the_user_they_read_and_write_any_ones_files() -> None:
    given = named(rendered(), "spottrain-watch")["securityContext"]
    assert given["runAsUser"] == 0
    assert given["capabilities"] == {"drop": ["ALL"], "add": ["DAC_OVERRIDE", "FOWNER"]}


def test_a_guaranteed_pod_stays_one() -> None:
    """Its restore uses the program's share; both ask for no GPU."""
    limits = {"cpu": 8, "memory": "64Gi", "nvidia.com/gpu": 8}
    one = rendered({"resources": {"limits": limits}})
    assert named(one, "spottrain-restore")["resources"] == {"limits": {"cpu": 8, "memory": "64Gi"}}
    part = named(one, "spottrain-watch")["resources"]
    assert part["requests"] == part["limits"]
    assert "limits" not in named(rendered(), "spottrain-watch")["resources"]


def test_the_annotated_container_is_the_program() -> None:
    containers = [{"name": "proxy", "image": "p"}, {"name": "trainer", "image": "i"}]
    template = {
        "metadata": {"annotations": {"kubectl.kubernetes.io/default-container": "trainer"}},
        "spec": {"containers": containers},
    }
    mold = pod.Mold(JOB, wishes(template), "j1", template, snap.Settings())
    one = pod.render(mold, actions.Overlay(0, 1, "abc", ask=clouds.Ask.SPOT, grace=26))["spec"]
    assert DIRECTORY in mounts(named(one, "trainer"))
    assert DIRECTORY not in mounts(named(one, "proxy"))


def test_without_a_directory_nothing_is_added() -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    plain = spec.Spec(workers=1, template=template, checkpoint=spec.Checkpoint("s3://b/p"))
    mold = pod.Mold(JOB, plain, "j1", template, snap.Settings())
    one = pod.render(mold, actions.Overlay(0, 1, "abc", ask=clouds.Ask.SPOT, grace=26))["spec"]
    assert "initContainers" not in one


def test_another_directory_is_another_job() -> None:
    """An edit of it takes effect by a restart, as one of the template does."""
    template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    with_one = wishes(template)
    without = spec.Spec(workers=3, template=template, checkpoint=spec.Checkpoint("s3://b/p"))
    assert job.template_hash(with_one) != job.template_hash(without)
