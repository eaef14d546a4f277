"""examples/batch-sqs: workers that are fed by a queue, killed and stopped, against a server's SQS and S3."""

import json
import random
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import boto3
import pytest

from tests.contract import gateway, services
from tests.train import processes

WORKER = processes.ROOT / "examples" / "batch-sqs" / "worker.py"


@dataclass
class Queue:
    """A queue, a bucket, and the environment that leads to them."""

    sqs: Any
    s3: Any
    url: str
    bucket: str
    endpoint: str

    def send(self, names: list[str]) -> None:
        for name in names:
            body = json.dumps({"id": name, "text": f"text {name}"})
            self.sqs.send_message(QueueUrl=self.url, MessageBody=body)

    def counts(self) -> tuple[int, int]:
        """Messages that anybody may have, and those that somebody holds."""
        names = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
        found = self.sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=list(names))["Attributes"]
        return int(found[names[0]]), int(found[names[1]])

    def results(self) -> list[dict[str, str]]:
        keys = [one["Key"] for one in self.s3.list_objects_v2(Bucket=self.bucket).get("Contents", [])]
        return [json.load(self.s3.get_object(Bucket=self.bucket, Key=key)["Body"]) for key in keys]

    def start(self, bench: processes.Bench, **env: object) -> processes.Program:
        told = {
            "QUEUE_URL": self.url,
            "RESULTS_BUCKET": self.bucket,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_DEFAULT_REGION": gateway.KEYS["AWS_REGION"],
        }
        return bench.run([sys.executable, str(WORKER)], **{**told, **env})


@pytest.fixture
def queue(moto_server: gateway.Server) -> Iterator[Queue]:
    bucket = services.Amazon(moto_server).make_place()
    sqs = boto3.session.Session().client(
        "sqs", endpoint_url=moto_server.endpoint, region_name=gateway.KEYS["AWS_REGION"]
    )
    url = sqs.create_queue(QueueName=bucket)["QueueUrl"]
    yield Queue(sqs, moto_server.client(), url, bucket, moto_server.endpoint)
    sqs.delete_queue(QueueUrl=url)


def test_each_id_has_one_result_through_kills_stops_and_messages_that_come_twice(
    bench: processes.Bench, queue: Queue
):
    chance = random.Random(18)
    names = [f"row-{number}" for number in range(60)]
    queue.send([*names, *names[:10]])
    for number in range(4):
        worker = queue.start(bench, VISIBILITY_SECONDS=2, ITEM_SECONDS=0.05)
        worker.wait_for("done with")
        time.sleep(chance.uniform(0, 0.4))  # the moment is what is tried
        worker.send(signal.SIGKILL if number % 2 else signal.SIGTERM)
        assert worker.wait(15) == (-signal.SIGKILL if number % 2 else 75)
    last = [queue.start(bench, VISIBILITY_SECONDS=2, ITEM_SECONDS=0.01, UNTIL_EMPTY=1) for _ in range(2)]
    assert [worker.wait(60) for worker in last] == [0, 0]
    assert sorted(one["id"] for one in queue.results()) == sorted(names)
    assert {one["id"]: one["output"] for one in queue.results()} == {
        name: f"TEXT {name.upper()}" for name in names
    }
    assert queue.counts() == (0, 0)


def test_a_stop_finishes_the_item_under_way_and_gives_the_others_back_at_once(
    bench: processes.Bench, queue: Queue
):
    """Without that nobody would see them for ten minutes."""
    queue.send([f"row-{number}" for number in range(10)])
    worker = queue.start(bench, VISIBILITY_SECONDS=600, ITEM_SECONDS=0.5)
    worker.wait_for("done with")
    worker.send(signal.SIGTERM)
    assert worker.wait(15) == 75
    done = worker.output.count("done with")
    assert 1 <= done <= 3
    assert queue.counts() == (10 - done, 0)
    assert len(queue.results()) == done


def test_an_item_longer_than_the_grace_is_given_back_before_the_process_is_killed(
    bench: processes.Bench, queue: Queue
):
    queue.send(["long"])
    worker = queue.start(bench, VISIBILITY_SECONDS=600, ITEM_SECONDS=60, SPOTTRAIN_GRACE_SECONDS=5)
    deadline = time.monotonic() + 20
    while queue.counts() != (0, 1):
        assert time.monotonic() < deadline, worker.output
        time.sleep(0.05)
    told = time.monotonic()
    worker.send(signal.SIGTERM)
    assert worker.wait(15) == 75
    assert time.monotonic() - told < 5
    assert queue.counts() == (1, 0)
    assert queue.results() == []


def test_an_item_that_takes_longer_than_messages_stay_hidden_goes_to_nobody_else(
    bench: processes.Bench, queue: Queue
):
    queue.send(["slow"])
    worker = queue.start(bench, VISIBILITY_SECONDS=2, ITEM_SECONDS=5)
    deadline = time.monotonic() + 20
    while queue.counts() != (0, 1):
        assert time.monotonic() < deadline, worker.output
        time.sleep(0.05)
    assert "Messages" not in queue.sqs.receive_message(QueueUrl=queue.url, WaitTimeSeconds=4)
    worker.wait_for("done with slow")
    assert queue.counts() == (0, 0)
