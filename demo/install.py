"""The operator and the demo's namespace in a cluster."""

import json
from pathlib import Path
from typing import Any

import boto3
import botocore.config
from botocore.exceptions import BotoCoreError, ClientError

from demo import clock, manifests, target
from demo.errors import DemoError
from demo.kubectl import Programs
from demo.manifests import NAMESPACE, SYSTEM_NAMESPACE, Store
from demo.screen import Screen
from demo.target import Site

RELEASE = "spottrain"
OPERATOR_SECONDS = 120


def operator(site: Site, chart: Path, screen: Screen) -> None:
    """Install the chart, or upgrade what an earlier demo installed, and wait until the operator is ready."""
    site.programs.apply(manifests.restricted_namespace(SYSTEM_NAMESPACE))
    _clear_interrupted(site.programs)
    screen.say(f"helm: chart {RELEASE} into namespace {SYSTEM_NAMESPACE}")
    site.programs.run(
        *("helm", "upgrade", "--install", RELEASE, str(chart), "--namespace", SYSTEM_NAMESPACE),
        *("--values", "-", "--wait", "--timeout", f"{OPERATOR_SECONDS}s"),
        stdin=json.dumps(values(site)),
        timeout=OPERATOR_SECONDS + 30,
    )


def _clear_interrupted(programs: Programs) -> None:
    """An install that was cut short blocks every later one; the resource and its jobs outlive its removal."""
    pending = programs.run("helm", "list", "--namespace", SYSTEM_NAMESPACE, "--pending", "--short").split()
    if RELEASE in pending:
        programs.run("helm", "uninstall", RELEASE, "--namespace", SYSTEM_NAMESPACE, "--wait")


def values(site: Site) -> dict[str, Any]:
    """The chart's values for this cluster."""
    image = {"repository": site.operator.repository, "tag": site.operator.tag, "digest": site.operator.digest}
    found: dict[str, Any] = {
        "image": {key: value for key, value in image.items() if value},
        "tolerations": [dict(one) for one in target.common_tolerations(site.nodes)],
    }
    if site.operator.version:
        # The name of the image stays the same when its content changes: this makes the pod change with it.
        found["podAnnotations"] = {"spottrain.dev/image-version": site.operator.version}
    return found


def namespace(site: Site, program: Path, screen: Screen) -> None:
    """A fresh namespace with the store's keys and the program, in place of one that an earlier demo left."""
    remove_namespace(site.programs, screen)
    site.programs.apply(manifests.namespace(NAMESPACE))
    files = {"train.py": program.read_text()}
    site.programs.apply(manifests.secret(site.store), manifests.program(files))
    clock.wait_for(
        f"the service account of namespace {NAMESPACE}",
        lambda: site.programs.kubectl(
            "get", "serviceaccount", "default", "-n", NAMESPACE, "--ignore-not-found", "-o", "name"
        ),
        seconds=30,
    )


def remove_namespace(programs: Programs, screen: Screen) -> None:
    """Delete the demo's namespace with all in it, and wait until it is gone."""
    if not _namespace_exists(programs):
        return
    programs.kubectl("delete", "namespace", NAMESPACE, "--wait=false")
    clock.wait_for(
        f"the end of namespace {NAMESPACE}",
        lambda: not _namespace_exists(programs),
        seconds=120,
        show=screen.stands,
        tell=lambda: _why_still_there(programs),
    )


def _namespace_exists(programs: Programs) -> bool:
    return bool(programs.kubectl("get", "namespace", NAMESPACE, "--ignore-not-found", "-o", "name"))


def _why_still_there(programs: Programs) -> str:
    pods = programs.kubectl("get", "pods", "-n", NAMESPACE, "--ignore-not-found", "-o", "name").split()
    return f"namespace {NAMESPACE} is ending; pods left: {', '.join(pods) or 'none'}"


class Bucket:
    """The store as the demo itself sees it; in some clusters only the pods can reach it."""

    def __init__(self, store: Store) -> None:
        bucket, _, prefix = store.uri.removeprefix("s3://").partition("/")
        self._bucket, self._prefix = bucket, f"{prefix.rstrip('/')}/" if prefix else ""
        self._client = boto3.session.Session().client(
            "s3",
            endpoint_url=store.endpoint or None,
            region_name=store.region or None,
            aws_access_key_id=store.keys.get("AWS_ACCESS_KEY_ID"),
            aws_secret_access_key=store.keys.get("AWS_SECRET_ACCESS_KEY"),
            aws_session_token=store.keys.get("AWS_SESSION_TOKEN"),
            config=botocore.config.Config(
                connect_timeout=5, read_timeout=20, retries={"total_max_attempts": 2}
            ),
        )

    def make(self) -> None:
        """Create the bucket unless it is there; DemoError when neither can be had."""
        try:
            self._client.head_bucket(Bucket=self._bucket)
        except ClientError:
            self._create()
        except BotoCoreError as error:
            raise DemoError(f"bucket {self._bucket} cannot be reached from here: {error}") from error

    def _create(self) -> None:
        try:
            self._client.create_bucket(Bucket=self._bucket)
        except (ClientError, BotoCoreError) as error:
            raise DemoError(f"bucket {self._bucket} is not there and cannot be created: {error}") from error

    def listing(self) -> list[str]:
        """All objects of this run."""
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=self._prefix
        )
        return [found["Key"] for page in pages for found in page.get("Contents", ())]

    def empty(self) -> None:
        """Delete all objects of this run."""
        names = [{"Key": key} for key in self.listing()]
        for start in range(0, len(names), 1000):
            self._client.delete_objects(Bucket=self._bucket, Delete={"Objects": names[start : start + 1000]})
