"""The object store as the demo itself sees it; in some clusters only the pods can reach it."""

from collections.abc import Iterator
from contextlib import contextmanager

import boto3
import botocore.config
from botocore.exceptions import BotoCoreError, ClientError

from demo.errors import DemoError
from demo.manifests import Store


class Bucket:
    """What is below the URI of a store. All methods raise DemoError when they cannot do it."""

    def __init__(self, store: Store) -> None:
        bucket, _, prefix = store.uri.removeprefix("s3://").partition("/")
        self._bucket, self._prefix = bucket, f"{prefix.rstrip('/')}/" if prefix else ""
        config = botocore.config.Config(connect_timeout=5, read_timeout=20, retries={"total_max_attempts": 2})
        self._client = boto3.session.Session().client(
            "s3",
            endpoint_url=store.endpoint or None,
            region_name=store.region or None,
            aws_access_key_id=store.keys.get("AWS_ACCESS_KEY_ID"),
            aws_secret_access_key=store.keys.get("AWS_SECRET_ACCESS_KEY"),
            aws_session_token=store.keys.get("AWS_SESSION_TOKEN"),
            config=config,
        )

    def make(self) -> None:
        """Create the bucket unless it is there."""
        with self._translated("reached or created"):
            try:
                self._client.head_bucket(Bucket=self._bucket)
            except ClientError:
                self._client.create_bucket(Bucket=self._bucket)

    def listing(self) -> list[str]:
        """Keys of all objects."""
        with self._translated("listed"):
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=self._prefix
            )
            return [found["Key"] for page in pages for found in page.get("Contents", ())]

    def read(self, key: str) -> bytes:
        """An object."""
        with self._translated(f"read at {key}"):
            return bytes(self._client.get_object(Bucket=self._bucket, Key=key)["Body"].read())

    def empty(self) -> None:
        """Delete all objects."""
        names = [{"Key": key} for key in self.listing()]
        with self._translated("emptied"):
            for start in range(0, len(names), 1000):
                batch = {"Objects": names[start : start + 1000]}
                self._client.delete_objects(Bucket=self._bucket, Delete=batch)

    @contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        try:
            yield
        except (ClientError, BotoCoreError) as error:
            raise DemoError(
                f"s3://{self._bucket}/{self._prefix} cannot be {what} from here: {error}"
            ) from error
