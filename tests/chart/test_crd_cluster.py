"""The resource as the real API server takes it: what it accepts, what it refuses and with which words."""

import collections.abc as cabc
import copy
import json
from typing import Any

import pytest
import yaml

from lab import api, clock, cluster
from manifests import render
from spottrain.api import status as statuses
from tests.chart import examples, sentences

pytestmark = pytest.mark.cluster

JOBS = "/apis/spottrain.dev/v1alpha1/namespaces/default/spottrainingjobs"
DRY = "?dryRun=All&fieldValidation=Strict"
NAME = "schema-test"
POOL = {"zone": "zone-a", "instanceType": "p4d.24xlarge"}
PVC = {"persistentVolumeClaim": {"claimName": "shared"}}


@pytest.fixture(scope="module")
def server(lab: cluster.Lab) -> api.Api:
    """The API server, with the resource in place."""
    lab.kubectl("apply", "-f", render.CRD)
    lab.kubectl("wait", "--for=condition=Established", f"crd/{render.CRD_NAME}", "--timeout=30s")
    return lab.api


def job(*, name: str = "tr", pod: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """The cases' BASE with other fields."""
    container = {"name": "trainer", "image": "busybox:1.36", "command": ["sleep", "3600"]}
    return {
        "apiVersion": "spottrain.dev/v1alpha1",
        "kind": "SpotTrainingJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "mode": "Gang",
            "workers": 4,
            "maxFailures": 3,
            "checkpoint": {"uri": "s3://ck/tr"},
            "template": {"spec": {"containers": [container], **(pod or {})}},
            **spec,
        },
    }


def shards(**spec: Any) -> dict[str, Any]:
    """An Independent job, without a place for checkpoints."""
    return without(job(mode="Independent", **spec), "checkpoint")


def without(document: dict[str, Any], field: str) -> dict[str, Any]:
    """The same job without a field of its spec."""
    document = copy.deepcopy(document)
    del document["spec"][field]
    return document


def limited(limits: dict[str, Any]) -> dict[str, Any]:
    return job(pod={"containers": [{"name": "trainer", "image": "i", "resources": {"limits": limits}}]})


def on_volume(
    uri: str, mount: str, source: dict[str, Any], *, read_only: bool | None = None
) -> dict[str, Any]:
    """A job whose only container mounts one volume."""
    mounted = {"name": "v", "mountPath": mount} | ({} if read_only is None else {"readOnly": read_only})
    container = {"name": "trainer", "image": "i", "volumeMounts": [mounted]}
    return job(checkpoint={"uri": uri}, pod={"containers": [container], "volumes": [{"name": "v", **source}]})


def watched(directory: str, document: dict[str, Any] | None = None, **checkpoint: Any) -> dict[str, Any]:
    """A job whose program writes checkpoints of its own there."""
    document = copy.deepcopy(document or job())
    document["spec"]["checkpoint"] |= {"directory": directory, **checkpoint}
    return document


def in_itself(path: str, *, directory: str) -> dict[str, Any]:
    """The store is a path of a shared volume, and so is what is stored."""
    return watched(directory, on_volume(f"file://{path}", "/data", PVC))


def refusals(server: api.Api, document: dict[str, Any]) -> list[tuple[str, str]]:
    """(field, sentence) of each cause that the server names for refusing to create it."""
    answer = server.call("POST", JOBS + DRY, document)
    assert answer.status in {400, 422}, answer.body
    return causes(answer)


def causes(answer: api.Answer) -> list[tuple[str, str]]:
    found = answer.body.get("details", {}).get("causes", [])
    return [(one["field"], one["message"]) for one in found]


REFUSED: cabc.Mapping[str, tuple[dict[str, Any], str, str]] = {
    "long name": (job(name="a" * 53), "metadata.name", sentences.NAME_LENGTH),
    "name starts with a digit": (job(name="1tr"), "metadata.name", sentences.NAME_LETTERS),
    "name with a dot": (job(name="tr.a"), "metadata.name", sentences.NAME_LETTERS),
    "floor above workers": (
        job(spot={"onDemandFloor": 5}),
        "spec.spot.onDemandFloor",
        sentences.FLOOR_TOO_HIGH,
    ),
    "floor above 100%": (
        job(spot={"onDemandFloor": "101%"}),
        "spec.spot.onDemandFloor",
        sentences.FLOOR_FORM,
    ),
    "floor as a word": (job(spot={"onDemandFloor": "4"}), "spec.spot.onDemandFloor", sentences.FLOOR_FORM),
    "no checkpoint (B19)": (without(job(), "checkpoint"), "spec.checkpoint", sentences.NO_CHECKPOINT),
    "no uri in a gang": (job(checkpoint={"keep": 5}), "spec.checkpoint.uri", sentences.NO_URI),
    "a gang of 1001": (job(workers=1001), "spec.workers", sentences.GANG_TOO_LARGE),
    "a gang a few at once": (job(parallelism=3), "spec.parallelism", sentences.PARALLEL_GANG),
    "a budget for each member": (
        job(maxFailuresPerIndex=1),
        "spec.maxFailuresPerIndex",
        sentences.GANG_PER_INDEX,
    ),
    "failed members": (job(maxFailedIndexes=1), "spec.maxFailedIndexes", sentences.GANG_FAILED_INDEXES),
    "names for independent workers": (
        shards(workerHostnames=True),
        "spec.workerHostnames",
        sentences.NAMES_FOR_NOBODY,
    ),
    "an index that is to be watched": (
        shards(progressTimeout="10m"),
        "spec.progressTimeout",
        sentences.INDEPENDENT_PROGRESS,
    ),
    "a deadline of independent workers": (
        shards(completeBy="2026-12-01T08:00:00Z"),
        "spec.completeBy",
        sentences.INDEPENDENT_DEADLINE,
    ),
    "independent workers that train on": (
        shards(spot={"keepTraining": True}),
        "spec.spot.keepTraining",
        sentences.INDEPENDENT_KEEPS,
    ),
    "a deadline in words": (job(completeBy="tomorrow"), "spec.completeBy", sentences.NO_TIME),
    "a deadline without a zone": (
        job(completeBy="2026-12-01T08:00:00"),
        "spec.completeBy",
        sentences.NO_TIME,
    ),
    "an active deadline in words": (job(activeDeadline="a day"), "spec.activeDeadline", sentences.DURATION),
    "floor above parallelism": (
        shards(parallelism=2, spot={"onDemandFloor": 3}),
        "spec.spot.onDemandFloor",
        sentences.FLOOR_ABOVE_PARALLELISM,
    ),
    "floor above the default of parallelism": (
        shards(workers=100, spot={"onDemandFloor": 51}),
        "spec.spot.onDemandFloor",
        sentences.FLOOR_ABOVE_PARALLELISM,
    ),
    "relative uri (B19)": (
        job(checkpoint={"uri": "./checkpoints"}),
        "spec.checkpoint.uri",
        sentences.NOT_ABSOLUTE,
    ),
    "bare path": (job(checkpoint={"uri": "/tmp/ck"}), "spec.checkpoint.uri", sentences.NOT_ABSOLUTE),
    "other scheme": (job(checkpoint={"uri": "ftp://a/b"}), "spec.checkpoint.uri", sentences.NOT_ABSOLUTE),
    "no bucket of Google's": (job(checkpoint={"uri": "gs:///x"}), "spec.checkpoint.uri", sentences.GCS_FORM),
    "dots in a container's name": (
        job(checkpoint={"uri": "az://a.b/x"}),
        "spec.checkpoint.uri",
        sentences.AZURE_FORM,
    ),
    "no bucket": (job(checkpoint={"uri": "s3://"}), "spec.checkpoint.uri", sentences.BUCKET_FORM),
    "bucket in capitals": (
        job(checkpoint={"uri": "s3://Bucket/x"}),
        "spec.checkpoint.uri",
        sentences.BUCKET_FORM,
    ),
    "empty part": (job(checkpoint={"uri": "s3://ck//x"}), "spec.checkpoint.uri", sentences.BUCKET_FORM),
    "dots": (job(checkpoint={"uri": "s3://ck/../x"}), "spec.checkpoint.uri", sentences.DOTS),
    "two slashes": (job(checkpoint={"uri": "file://data/x"}), "spec.checkpoint.uri", sentences.FILE_FORM),
    "file without a volume (B19)": (
        job(checkpoint={"uri": "file:///tmp/ck"}),
        "spec.checkpoint.uri",
        sentences.IN_THE_POD,
    ),
    "file on emptyDir": (
        on_volume("file:///data/ck", "/data", {"emptyDir": {}}),
        "spec.checkpoint.uri",
        sentences.IN_THE_POD,
    ),
    "file beside the mount": (
        on_volume("file:///database/ck", "/data", PVC),
        "spec.checkpoint.uri",
        sentences.IN_THE_POD,
    ),
    "file on a read-only mount": (
        on_volume("file:///data/ck", "/data", PVC, read_only=True),
        "spec.checkpoint.uri",
        sentences.IN_THE_POD,
    ),
    "step without a number": (
        job(checkpoint={"uri": "s3://ck/tr", "restore": "Step"}),
        "spec.checkpoint.step",
        sentences.STEP_MISSING,
    ),
    "number without Step": (
        job(checkpoint={"uri": "s3://ck/tr", "step": 7}),
        "spec.checkpoint.step",
        sentences.STEP_UNUSED,
    ),
    "directory without a uri": (
        job(mode="Independent", checkpoint={"directory": "/ck"}),
        "spec.checkpoint.uri",
        sentences.NO_URI_FOR_DIRECTORY,
    ),
    "relative directory": (watched("checkpoints"), "spec.checkpoint.directory", sentences.DIRECTORY_FORM),
    "directory with a slash at its end": (
        watched("/ck/"),
        "spec.checkpoint.directory",
        sentences.DIRECTORY_FORM,
    ),
    "directory with dots": (watched("/ck/../x"), "spec.checkpoint.directory", sentences.DIRECTORY_FORM),
    "directory and interval": (
        watched("/ck", interval="5m"),
        "spec.checkpoint.interval",
        sentences.DIRECTORY_INTERVAL,
    ),
    "directory around the uri": (
        in_itself("/data/ck", directory="/data/ck"),
        "spec.checkpoint.directory",
        sentences.DIRECTORY_IN_URI,
    ),
    "directory below the uri": (
        in_itself("/data/ck", directory="/data/ck/own"),
        "spec.checkpoint.directory",
        sentences.DIRECTORY_IN_URI,
    ),
    "directory on a shared volume": (
        watched("/ck", on_volume("s3://ck/tr", "/ck", PVC)),
        "spec.checkpoint.directory",
        sentences.DIRECTORY_VOLUME,
    ),
    "directory on a read-only volume": (
        watched("/ck", on_volume("s3://ck/tr", "/ck", {"emptyDir": {}}, read_only=True)),
        "spec.checkpoint.directory",
        sentences.DIRECTORY_VOLUME,
    ),
    "window without a unit": (job(spot={"window": "90"}), "spec.spot.window", sentences.DURATION),
    "a fallback for no time": (
        job(spot={"fallback": {"for": "0s"}}),
        "spec.spot.fallback.for",
        sentences.LONGER,
    ),
    "a wait in words": (
        job(spot={"fallback": {"after": "a while"}}),
        "spec.spot.fallback.after",
        sentences.DURATION,
    ),
    "a pool of no name": (job(spot={"pools": [{"weight": 2}]}), "spec.spot.pools[0]", sentences.NO_POOL),
    "a pool twice": (
        job(spot={"pools": [POOL, {"zone": "zone-a"}, {**POOL, "weight": 2}]}),
        "spec.spot.pools",
        sentences.POOL_TWICE,
    ),
    "a zone that no label can say": (
        job(spot={"pools": [{"zone": "zone a"}]}),
        "spec.spot.pools[0].zone",
        sentences.LABEL,
    ),
    "a weight above 100": (
        job(spot={"pools": [{**POOL, "weight": 101}]}),
        "spec.spot.pools[0].weight",
        "should be less than or equal to 100",
    ),
    "a gang that would give back before it falls back": (
        job(spot={"fallback": {"after": "15m1s"}}),
        "spec.spot.fallback.after",
        sentences.FALLBACK_TOO_LATE,
    ),
    "a fallback by default after a gang gives back": (
        job(spot={"fallback": {}}, placementTimeout="899.5s"),
        "spec.spot.fallback.after",
        sentences.FALLBACK_TOO_LATE,
    ),
    "grace in words": (job(spot={"gracePeriod": "2 minutes"}), "spec.spot.gracePeriod", sentences.DURATION),
    "ttl in an unknown unit": (job(ttlAfterFinished="1w"), "spec.ttlAfterFinished", sentences.DURATION),
    "interval in words": (
        job(checkpoint={"uri": "s3://ck/tr", "interval": "often"}),
        "spec.checkpoint.interval",
        sentences.INTERVAL,
    ),
    "endpoint without http": (
        job(checkpoint={"uri": "s3://ck/tr", "endpoint": "minio:9000"}),
        "spec.checkpoint.endpoint",
        sentences.ENDPOINT,
    ),
    "a price of nothing": (job(prices={"spot": 0, "onDemand": 1}), "spec.prices.spot", sentences.PRICE),
    "no containers": (job(pod={"containers": []}), "spec.template.spec", sentences.NO_CONTAINERS),
    "restarts by the kubelet": (
        job(pod={"restartPolicy": "OnFailure"}),
        "spec.template.spec",
        sentences.RESTART_POLICY,
    ),
}


@pytest.mark.parametrize(
    ("document", "field", "sentence"), [pytest.param(*one, id=name) for name, one in REFUSED.items()]
)
def test_a_mistake_is_refused_with_its_field_and_what_to_do(
    server: api.Api, document: dict[str, Any], field: str, sentence: str
) -> None:
    ((found, message),) = refusals(server, document)
    assert found == field
    assert message.endswith(sentence)


@pytest.mark.parametrize(
    ("document", "field"),
    [
        (job(spot={"maxPrice": 2}), 'unknown field "spec.spot.maxPrice"'),
        (job(minWorkers=2), 'unknown field "spec.minWorkers"'),
    ],
)
def test_a_field_of_a_later_version_is_refused_by_name(
    server: api.Api, document: dict[str, Any], field: str
) -> None:
    answer = server.call("POST", JOBS + DRY, document)
    assert answer.status == 400
    assert field in answer.body["message"]


def test_a_mode_of_a_later_version_is_refused_with_the_choices(server: api.Api) -> None:
    (found, message), *_ = refusals(server, job(mode="Elastic"))
    assert (found, message) == (
        "spec.mode",
        'Unsupported value: "Elastic": supported values: "Gang", "Independent"',
    )


@pytest.mark.parametrize(
    ("prices", "sentence"),
    [
        ({"spot": 1, "onDemand": "much"}, 'must be of type number: "string"'),
        ({"spot": 1.1}, "Required value"),
    ],
)
def test_a_price_that_is_missing_or_no_number_is_refused_with_its_field(
    server: api.Api, prices: dict[str, Any], sentence: str
) -> None:
    (found, message), *_ = refusals(server, job(prices=prices))
    assert found == "spec.prices.onDemand"
    assert message.endswith(sentence)


@pytest.mark.parametrize(
    "document",
    [
        job(name="a" * 52),
        job(spot={"onDemandFloor": 4}),
        job(spot={"onDemandFloor": "100%"}),
        job(checkpoint={"uri": "s3://bucket"}),
        job(checkpoint={"uri": "gs://my_bucket.example/team/run"}),
        job(checkpoint={"uri": "az://ck-1/tr", "endpoint": "https://account.blob.core.windows.net"}),
        job(checkpoint={"uri": "s3://ck/tr", "restore": "Step", "step": 7}),
        job(spot={"window": "1h30m", "gracePeriod": "1.5h"}, ttlAfterFinished="2d"),
        job(spot={"fallback": {}}),
        job(spot={"pools": []}),
        job(
            spot={"pools": [POOL, {"zone": "zone-a"}, {"instanceType": POOL["instanceType"], "weight": 100}]}
        ),
        job(spot={"pools": [{"zone": f"{'z' * 60}-{number}"} for number in range(10, 42)]}),
        job(spot={"fallback": {"after": "0s", "for": "0.5h"}}),
        job(spot={"fallback": {"after": "90m"}}, placementTimeout="1h30m"),
        job(spot={"fallback": {"after": "1d"}}, placementTimeout="2d"),
        job(spot={"fallback": {"after": "1h"}}, workers=1),
        shards(spot={"fallback": {"after": "1h"}}),
        job(pod={"restartPolicy": "Never"}),
        job(workers=1000),
        job(prices={"spot": 0.000001, "onDemand": 999999}),
        shards(workers=10000, parallelism=1000, spot={"onDemandFloor": 1000}),
        shards(workers=51, spot={"onDemandFloor": 50}, maxFailuresPerIndex=0, maxFailedIndexes=0),
        job(mode="Independent", checkpoint={"keep": 5}),
        on_volume("file:///data/ck", "/data", PVC),
        watched("/checkpoints"),
        watched("/ck", job(mode="Independent", workers=10000)),
        watched("/data/own", on_volume("file:///data/ck", "/data", PVC)),
        watched("/ck", on_volume("s3://ck/tr", "/ck/", {"emptyDir": {"sizeLimit": "1Ti"}})),
        watched("/ck", on_volume("s3://ck/tr", "/ck", {"ephemeral": {"volumeClaimTemplate": {}}})),
        on_volume("file:///data", "/data/", PVC),
        on_volume("file:///data/ck", "/data", {"hostPath": {"path": "/mnt/shared"}}, read_only=False),
    ],
    ids=lambda one: json.dumps(one["spec"] | {"template": ...}, default=str)[:60],
)
def test_what_stands_at_a_limit_is_accepted(server: api.Api, document: dict[str, Any]) -> None:
    assert server.call("POST", JOBS + DRY, document).status == 201


def test_b19_a_file_uri_on_a_mounted_claim_is_accepted_without_a_warning(lab: cluster.Lab) -> None:
    document = on_volume("file:///data/ck", "/data", PVC)
    said = lab.kubectl(
        "create", "--dry-run=server", "--warnings-as-errors", "-f", "-", stdin=json.dumps(document)
    )
    assert said == "spottrainingjob.spottrain.dev/tr created (server dry run)\n"


@pytest.mark.parametrize(
    "limits",
    [
        {"cpu": 2},
        {"cpu": "2"},
        {"cpu": 0.5},
        {"cpu": "500m"},
        {"memory": "64Gi", "nvidia.com/gpu": 8},
        {"memory": "64Gi", "nvidia.com/gpu": "8"},
    ],
    ids=str,
)
def test_a21_a_quantity_is_kept_as_it_was_spelled(server: api.Api, limits: dict[str, Any]) -> None:
    stored = server.call("POST", JOBS + DRY, limited(limits)).expect("the job")
    assert stored["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] == limits


@pytest.mark.parametrize(
    "limits",
    [{"memory": "8 GB"}, {"memory": "eight"}, {"memory": ""}, {"memory": -1}, {"memory": [1]}],
    ids=str,
)
def test_a21_what_is_no_quantity_is_refused_with_its_path(server: api.Api, limits: dict[str, Any]) -> None:
    (field, _), *_ = refusals(server, limited(limits))
    assert field == "spec.template.spec.containers[0].resources.limits.memory"


def test_a_pod_keeps_every_field_that_the_schema_does_not_know(server: api.Api) -> None:
    pod = {
        "priorityClassName": "high",
        "securityContext": {"runAsNonRoot": True},
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "s"}}}}],
        "initContainers": [{"name": "i", "image": "i", "restartPolicy": "Always"}],
        "containers": [
            {
                "name": "trainer",
                "image": "i",
                "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "s"}],
                "resources": {"claims": [{"name": "gpu"}]},
            },
            {"name": "side", "image": "i", "env": []},
        ],
    }
    stored = server.call("POST", JOBS + DRY, job(pod=pod)).expect("the job")
    assert stored["spec"]["template"]["spec"] == pod


def test_what_is_left_out_is_filled_in_visibly(server: api.Api) -> None:
    document = job()
    document["spec"] = {"template": document["spec"]["template"], "checkpoint": {"uri": "s3://ck/tr"}}
    stored = server.call("POST", JOBS + DRY, document).expect("the job")
    assert without(stored, "template")["spec"] == {
        "mode": "Gang",
        "workers": 1,
        "spot": {"onDemandFloor": 0, "keepTraining": False},
        "checkpoint": {
            "uri": "s3://ck/tr",
            "keep": 3,
            "interval": "auto",
            "restore": "Latest",
            "onBroken": "Stop",
        },
        "placementTimeout": "15m",
        "suspend": False,
        "workerHostnames": False,
    }


@pytest.fixture
def stored(server: api.Api) -> cabc.Iterator[str]:
    """The path of a job that is there for the length of a test."""
    document = job(name=NAME)
    document["spec"]["suspend"] = True  # whichever operator may be running leaves it alone
    server.call("POST", JOBS, document).expect("the job")
    yield f"{JOBS}/{NAME}"
    server.call("DELETE", f"{JOBS}/{NAME}")


def test_the_place_of_the_checkpoints_stays(server: api.Api, stored: str) -> None:
    changed = server.merge(stored, {"spec": {"checkpoint": {"uri": "s3://ck/other"}}})
    ((field, message),) = causes(changed)
    assert (changed.status, field) == (422, "spec.checkpoint.uri")
    assert message.endswith(sentences.URI_CHANGED)


def test_who_has_a_name_stays(server: api.Api, stored: str) -> None:
    """The Service is there already, and workers look each other up."""
    changed = server.merge(stored, {"spec": {"workerHostnames": True}})
    ((field, message),) = causes(changed)
    assert (changed.status, field) == (422, "spec.workerHostnames")
    assert message.endswith(sentences.HOSTNAMES_CHANGED)


def test_the_mode_stays(server: api.Api, stored: str) -> None:
    changed = server.merge(stored, {"spec": {"mode": "Independent"}})
    assert (changed.status, causes(changed)[0][0]) == (422, "spec.mode")
    assert causes(changed)[0][1].endswith(sentences.MODE_CHANGED)


def test_a_place_for_checkpoints_is_neither_added_nor_taken_away(server: api.Api) -> None:
    document = shards()
    document["metadata"]["name"] = f"{NAME}-i"
    document["spec"]["suspend"] = True
    server.call("POST", JOBS, document).expect("the job")
    path = f"{JOBS}/{NAME}-i"
    try:
        added = server.merge(path, {"spec": {"checkpoint": {"uri": "s3://ck/tr"}}})
        ((field, message),) = causes(added)
        assert (added.status, field) == (422, "spec.checkpoint.uri")
        assert message.endswith(sentences.URI_ADDED)
    finally:
        server.call("DELETE", path)


@pytest.mark.parametrize("status", [{"attempt": 2}, {"attempt": None}, None], ids=str)
def test_the_attempt_never_goes_down(server: api.Api, stored: str, status: Any) -> None:
    server.merge(f"{stored}/status", {"status": {"attempt": 3}}).expect("the first write")
    lower = server.merge(f"{stored}/status", {"status": status})
    ((field, message),) = causes(lower)
    assert (lower.status, field) == (422, "status.attempt")
    assert message.endswith(sentences.ATTEMPT)


def test_the_attempt_may_stay_or_go_up(server: api.Api, stored: str) -> None:
    written = [
        server.merge(f"{stored}/status", {"status": {"attempt": number}}).status for number in (1, 1, 2, 9)
    ]
    assert written == [200, 200, 200, 200]


def test_a27_a_status_is_stored_as_it_was_written(server: api.Api, stored: str) -> None:
    written = statuses.render(examples.STATUS)
    found = server.merge(f"{stored}/status", {"status": written}).expect("the status")["status"]
    assert found == written
    assert statuses.parse(found) == examples.STATUS


def test_the_columns_say_how_the_run_goes(lab: cluster.Lab, server: api.Api, stored: str) -> None:
    """Compared with the status at that moment: an operator that runs here may correct what is written."""
    status = statuses.render(examples.STATUS)
    server.merge(f"{stored}/status", {"status": status}).expect("the status")

    def shown() -> list[str]:
        header, row = (line.split() for line in lab.kubectl("get", "stj", "-o", "wide", NAME).splitlines())
        ages = (header.index("CHECKPOINT"), header.index("AGE"))  # they go by the clock
        return [" ".join(header), " ".join(one for place, one in enumerate(row) if place not in ages)]

    def expected() -> list[str]:
        now = server.get(stored).expect("the job")["status"]
        values = (
            *(NAME, now["phase"], now["workersText"], now["progress"]["step"], now["reclaims"]),
            now["finishedText"],
            *(now["attempt"], now["workers"]["spot"], now["workers"]["onDemand"], now["cost"]["saved"]),
        )
        header = "NAME PHASE WORKERS STEP RECLAIMS CHECKPOINT FINISHED AGE ATTEMPT SPOT ON-DEMAND SAVED"
        return [header, " ".join(str(value) for value in values)]

    clock.poll(lambda: shown() == expected(), seconds=10)
    assert shown() == expected()


@pytest.mark.parametrize(
    "path",
    [
        *("stj", "stj.spec", "stj.spec.spot", "stj.spec.checkpoint", "stj.spec.template"),
        *("stj.spec.template.spec", "stj.spec.template.spec.containers", "stj.spec.template.spec.volumes"),
        *("stj.status", "stj.status.conditions", "stj.status.workers", "stj.status.checkpoint"),
        *("stj.status.progress", "stj.status.lastReclaim", "stj.status.attempts"),
        *("stj.spec.prices", "stj.status.cost", "stj.status.cost.ledger.open"),
    ],
)
def test_explain_leaves_no_field_without_words(lab: cluster.Lab, server: api.Api, path: str) -> None:
    assert server.get("/readyz").ok
    said = lab.kubectl("explain", path)
    assert [gap for gap in ("<empty>", "<no description>") if gap in said] == []


SAMPLES = sorted([*render.ROOT.glob("manifests/samples/*.yaml"), *render.ROOT.glob("examples/*/job.yaml")])


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_sample_is_accepted_as_it_stands(server: api.Api, sample: Any) -> None:
    for document in yaml.safe_load_all(sample.read_text()):
        answer = server.call("POST", JOBS + DRY, document)
        assert (answer.status, causes(answer)) == (201, [])
