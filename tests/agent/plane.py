"""A small API server: one Node, its pods, Events, and the agent's rules of merging. It can be cut off."""

import copy
import datetime as dt
import json
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from lab import clock
from spottrain.api import names

Object = dict[str, Any]
NODE = "n1"


class Plane:
    """What is in it, and what was asked of it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.node: Object | None = new_node("uid-1")
        self.events: dict[str, Object] = {}
        self.pods: dict[str, Object] = {}
        self.deletions: list[tuple[str, Object]] = []
        self.patches: list[Object] = []
        self.created_nodes = 0
        self.protected: set[str] = set()
        """Pods whose deletion is refused."""
        self.cut_off = False
        self.conflicts = 0
        """So many of the next patches meet a newer version."""
        self.clock_skew = 0.0
        """Seconds that its clock is ahead of this machine's."""
        self.watch_faults: list[bytes] = []
        """What watches are answered with first, one each."""
        self.watch_pause = 0.1
        """Seconds after which a change of the Node is seen in a watch, at most."""
        self.ended = False
        self.token = "t1"
        self.url = ""

    def watched(self) -> Iterator[bytes]:
        """The Node, which tests change as they like: its present state, and each unlike the one before."""
        if self.watch_faults:
            yield self.watch_faults.pop()
            return
        told: Object | None = None
        while not (self.cut_off or self.ended):
            with self.lock:
                state = copy.deepcopy(self.node)
            if state not in (told, None):
                yield json.dumps({"type": "MODIFIED", "object": state}).encode() + b"\n"
                told = state
            clock.poll(lambda: self.cut_off or self.ended, seconds=self.watch_pause)

    def mark(self) -> Object | None:
        """What the Node's annotation says."""
        with self.lock:
            annotations = self.node["metadata"].get("annotations", {}) if self.node else {}
            text = annotations.get(names.ANNOTATION_RECLAIM)
        return json.loads(text) if text else None

    def taints(self) -> list[Object]:
        with self.lock:
            return list(self.node["spec"].get("taints", [])) if self.node else []

    def condition(self) -> Object:
        with self.lock:
            found = self.node["status"]["conditions"] if self.node else []
            return next((dict(one) for one in found if one["type"] == "SpottrainNotices"), {})

    def reasons(self) -> list[str]:
        with self.lock:
            return [one["reason"] for one in self.events.values()]

    def add_pod(self, name: str, *, grace: int = 60, node: str = NODE, job: str | None = "tr") -> None:
        labels = {names.LABEL_JOB: job} if job else {}
        self.pods[name] = {
            "metadata": {"name": name, "namespace": "ml", "uid": f"uid-{name}", "labels": labels},
            "spec": {"nodeName": node, "terminationGracePeriodSeconds": grace},
            "status": {"phase": "Running"},
        }

    # What each request does; (status, body).

    def get(self, path: str, query: dict[str, str]) -> tuple[int, Object]:
        if path == f"/api/v1/nodes/{NODE}":
            return (200, copy.deepcopy(self.node)) if self.node else (404, {"message": "no such node"})
        if path == "/api/v1/pods":
            node, label = query["fieldSelector"].removeprefix("spec.nodeName="), query["labelSelector"]
            items = [
                one
                for one in self.pods.values()
                if one["spec"]["nodeName"] == node and label in one["metadata"]["labels"]
            ]
            return 200, {"items": copy.deepcopy(items)}
        return 404, {"message": path}

    def patch(self, path: str, body: Object) -> tuple[int, Object]:
        if self.node is None:
            return 404, {"message": "no such node"}
        self.patches.append(body)
        metadata = self.node["metadata"]
        if path.endswith("/status"):
            for one in body["status"]["conditions"]:
                others = [c for c in self.node["status"]["conditions"] if c["type"] != one["type"]]
                self.node["status"]["conditions"] = [*others, one]
        else:
            if self.conflicts:
                self.conflicts -= 1
                metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)
            current = metadata["resourceVersion"]
            if body["metadata"].pop("resourceVersion", current) != current:
                return 409, {"message": "changed meanwhile"}
            self.node = merged(self.node, body)
        self.node["metadata"]["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)
        return 200, self.node

    def post(self, path: str, body: Object) -> tuple[int, Object]:
        if path.endswith("/nodes"):
            self.created_nodes += 1
        name = body["metadata"]["name"]
        if name in self.events:
            return 409, {"message": "is there"}
        self.events[name] = body
        return 201, body

    def delete(self, path: str, body: Object) -> tuple[int, Object]:
        name = path.rpartition("/")[2]
        self.deletions.append((name, body))
        if name in self.protected:
            return 403, {"message": "some policy says no"}
        if name not in self.pods:
            return 404, {"message": "no such pod"}
        self.pods[name]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        return 200, self.pods[name]


def new_node(uid: str) -> Object:
    foreign = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    return {
        "metadata": {"name": NODE, "uid": uid, "resourceVersion": "1", "annotations": {"other": "stays"}},
        "spec": {"taints": [foreign]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


def merged(target: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


@contextmanager
def running() -> Iterator[Plane]:
    plane = Plane()

    class Handler(BaseHTTPRequestHandler):
        def _do(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else {}
            path, _, query = self.path.partition("?")
            if plane.cut_off:
                self.close_connection = True
                return
            if "watch=true" in query:
                self._watch()
                return
            known = self.headers["Authorization"] == f"Bearer {plane.token}"
            with plane.lock:
                if not known:
                    status, answer = 401, {"message": "Unauthorized"}
                elif self.command == "GET":
                    status, answer = plane.get(path, dict(urllib.parse.parse_qsl(query)))
                else:
                    status, answer = getattr(plane, self.command.lower())(path, body)
                text = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def date_time_string(self, timestamp: float | None = None) -> str:
            told = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=plane.clock_skew)
            return super().date_time_string(timestamp or told.timestamp())

        def _watch(self) -> None:
            self.send_response(200)
            self.end_headers()
            for line in plane.watched():
                self.wfile.write(line)

        do_GET = do_PATCH = do_POST = do_DELETE = _do

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    plane.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield plane
    finally:
        plane.ended = True
        server.shutdown()
        thread.join()
        server.server_close()
