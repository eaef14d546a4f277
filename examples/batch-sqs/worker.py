"""A worker that is fed by an SQS queue: messages of {"id": …, "text": …} in, one object for each id out.

It holds up to ten messages at a time, keeps them from others while it works on them, and gives them back the
moment it has to go. SQS delivers a message at least once; that each id has one result is seen to by the name
of the result, made of the id, the model and its parameters, and by a write that never replaces.

Environment: QUEUE_URL, RESULTS_BUCKET, AWS_ENDPOINT_URL (for services other than AWS), VISIBILITY_SECONDS
(how long others don't see what this worker holds, renewed at half of it), ITEM_SECONDS (what an item takes
on a GPU), UNTIL_EMPTY=1 (end when the queue has nothing more to give).
"""

import json
import os
import threading
import time
from typing import Any

import boto3
from botocore.exceptions import ClientError

from spottrain import batch

MODEL = batch.Identity("shout@1", {"mark": "!"})
QUEUE, BUCKET = os.environ["QUEUE_URL"], os.environ["RESULTS_BUCKET"]
VISIBILITY = int(os.environ.get("VISIBILITY_SECONDS", "120"))
PAUSE = float(os.environ.get("ITEM_SECONDS", "0"))
UNTIL_EMPTY = os.environ.get("UNTIL_EMPTY") == "1"


class Held:
    """The messages that this worker holds, by receipt handle."""

    def __init__(self) -> None:
        self._sqs = boto3.session.Session().client("sqs")
        self._handles: set[str] = set()
        self._lock = threading.Lock()

    def receive(self) -> list[Any]:
        """Up to ten more; none if there are none within five seconds, in which SIGTERM waits too."""
        answer = self._sqs.receive_message(
            QueueUrl=QUEUE, MaxNumberOfMessages=10, WaitTimeSeconds=5, VisibilityTimeout=VISIBILITY
        )
        messages = answer.get("Messages", [])
        with self._lock:
            self._handles |= {message["ReceiptHandle"] for message in messages}
        return list(messages)

    def done(self, message: Any) -> None:
        """Its result is stored: nobody needs it any more."""
        with self._lock:
            self._handles.discard(message["ReceiptHandle"])
        self._sqs.delete_message(QueueUrl=QUEUE, ReceiptHandle=message["ReceiptHandle"])

    def extend(self) -> None:
        """Keep all of them for another while."""
        with self._lock:
            self._change(VISIBILITY)

    def hand_back(self) -> None:
        """Others may have them now."""
        with self._lock:
            self._change(0)
            self._handles.clear()

    def _change(self, seconds: int) -> None:
        entries = [
            {"Id": str(number), "ReceiptHandle": handle, "VisibilityTimeout": seconds}
            for number, handle in enumerate(self._handles)
        ]
        if entries:
            self._sqs.change_message_visibility_batch(QueueUrl=QUEUE, Entries=entries)


class Results:
    """One object for each id."""

    def __init__(self) -> None:
        self._s3 = boto3.session.Session().client("s3")

    def there(self, key: str) -> bool:
        """Whether somebody has computed it, in this or an earlier life."""
        return self._s3.list_objects_v2(Bucket=BUCKET, Prefix=f"{key}.json")["KeyCount"] > 0

    def write(self, key: str, result: Any) -> None:
        """Store it, unless another worker was faster: then theirs stays."""
        try:
            self._s3.put_object(
                Bucket=BUCKET, Key=f"{key}.json", Body=json.dumps(result).encode(), IfNoneMatch="*"
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "PreconditionFailed":
                raise


def infer(text: str) -> str:
    """It stands for a model."""
    time.sleep(PAUSE)
    return text.upper()


def keep(held: Held, ended: threading.Event) -> None:
    """Until then, nobody else gets what is held."""
    while not ended.wait(VISIBILITY / 2):
        held.extend()


def main() -> None:
    """Work until the queue is empty, or until SIGTERM."""
    held, results, ended = Held(), Results(), threading.Event()
    threading.Thread(target=keep, args=(held, ended), daemon=True).start()
    with batch.worker(held.hand_back) as life:
        while not life.stopping:
            messages = held.receive()
            if not messages and UNTIL_EMPTY:
                break
            for message in messages:
                if life.stopping:
                    break
                row = json.loads(message["Body"])
                key = MODEL.key(row["id"])
                if not results.there(key):
                    results.write(key, {"id": row["id"], "output": infer(row["text"])})
                held.done(message)
                print(f"done with {row['id']}", flush=True)
        ended.set()


if __name__ == "__main__":
    main()
