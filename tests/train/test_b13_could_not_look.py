"""B13: "could not look" is not "nothing there"."""

import threading

import pytest

from spottrain.checkpoint import s3
from tests.contract import faults, gateway
from tests.train import processes
from tests.unit.checkpoint import lives


def counter(bench: processes.Bench, uri: str, endpoint: str, **env: object) -> processes.Program:
    return bench.start(
        "counter.py", 3, SPOTTRAIN_CHECKPOINT_URI=uri, SPOTTRAIN_CHECKPOINT_ENDPOINT=endpoint, **env
    )


def refused(program: processes.Program, kind: str, text: str) -> None:
    assert program.wait() not in {0, 75}
    assert f"spottrain.errors.{kind}: " in program.output
    assert text in program.output
    assert program.steps() == []
    assert "fresh" not in program.output


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (faults.Answer(403, "AccessDenied"), "StoreDenied"),
        (faults.Answer(500, "InternalError"), "StoreUnavailable"),
        (faults.Answer(404, "NoSuchBucket"), "StoreMissing"),
    ],
    ids=["403", "500", "no-such-bucket"],
)
def test_b13_a_list_that_is_refused_is_an_error(
    bench: processes.Bench, proxy: faults.Proxy, bucket: str, answer: faults.Answer, kind: str
):
    proxy.rule = lambda request: answer if request.is_list else None
    refused(counter(bench, f"s3://{bucket}/tr", proxy.endpoint), kind, f"s3://{bucket}/tr: cannot list")


def test_b13_a_list_that_hangs_is_an_error(bench: processes.Bench, proxy: faults.Proxy, bucket: str):
    held = faults.Hold(threading.Event())
    proxy.rule = lambda request: held if request.is_list else None
    program = counter(bench, f"s3://{bucket}/tr", proxy.endpoint, SPOTTRAIN_STORE_READ_SECONDS=0.5)
    refused(program, "StoreUnavailable", "Read timeout")
    held.release.set()


def test_b13_an_unknown_host_is_an_error(bench: processes.Bench):
    refused(
        counter(bench, "s3://ck/tr", "http://no-such-host.invalid:9"),
        "StoreUnavailable",
        "no-such-host.invalid",
    )


def test_b13_a_bucket_that_is_not_there_is_an_error(bench: processes.Bench, s3_server: gateway.Gateway):
    refused(
        counter(bench, "s3://no-bucket/tr", s3_server.endpoint), "StoreMissing", "create the bucket no-bucket"
    )


def test_b13_a_pinned_step_that_is_missing_is_named(
    bench: processes.Bench, s3_server: gateway.Gateway, bucket: str
):
    store = s3.S3Store(bucket, "tr", endpoint=s3_server.endpoint)
    lives.save(store, lives.start(store, "a").record, 60)
    program = counter(bench, f"s3://{bucket}/tr", s3_server.endpoint, SPOTTRAIN_RESTORE="Step:70")
    refused(program, "NoSuchStep", "step 70 was asked for and is not there; steps that are: 60")


def test_b13_an_empty_prefix_is_a_fresh_start_and_says_so(
    bench: processes.Bench, s3_server: gateway.Gateway, bucket: str
):
    program = counter(bench, f"s3://{bucket}/tr", s3_server.endpoint)
    assert program.wait() == 0
    assert f"fresh start at step 0: no checkpoint to go on from under s3://{bucket}/tr" in program.output
    assert program.steps() == [0, 1, 2]


def test_a_store_that_fails_while_training_costs_no_training(
    bench: processes.Bench, proxy: faults.Proxy, bucket: str, s3_server: gateway.Gateway
):
    """The save comes to nothing, says so, and the next one works."""
    failing = threading.Event()
    failing.set()

    def rule(request: faults.Request) -> faults.Fault | None:
        return faults.Answer(503, "SlowDown") if failing.is_set() and request.is_put_of("/steps/") else None

    proxy.rule = rule
    uri = f"s3://{bucket}/tr"
    env = {"SPOTTRAIN_CHECKPOINT_URI": uri, "SPOTTRAIN_CHECKPOINT_ENDPOINT": proxy.endpoint}
    program = bench.start("counter.py", 1000, SPOTTRAIN_CHECKPOINT_INTERVAL=0.2, **env)
    program.wait_for("event=save-failed")
    failing.clear()
    program.wait_for("event=saved")
    assert "Traceback" not in program.output
