"""A gang of light workers that write down when SIGTERM reaches them, and one such pod beside it.

What they write is read from the disk, which all machines of a lab share: nothing asks the API server while
it is measured.
"""

import contextlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lab import clock
from lab.api import Api
from lab.cluster import Lab

Object = dict[str, Any]
NAMESPACE: Final = "warned"
WORKERS: Final = 4
GPUS: Final = 4
"""All that a machine has: each worker is on one of its own."""
IMAGE: Final = "docker.io/library/python:3.11-slim-bookworm"
SPOT: Final = {"karpenter.sh/capacity-type": "spot"}
PATIENCE: Final = 120.0
NOTICED_WITHIN: Final = 30.0
BREATH: Final = 0.02
LEAD: Final = 2.0
"""Seconds: in its first second or two a kubelet takes longer to end a pod."""

LEAVES, STAYS = "leaves", "stays"
"""What a worker does when it is told to end: it does, or it lives until it is killed and says so."""
PROGRAM: Final = f"""
import os, signal, sys, time
words = os.open("/words/" + os.uname().nodename, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def say(word):
    os.write(words, f"{{word}} {{time.time():.4f}}\\n".encode())
def told(*_):
    say("told")
    if sys.argv[1] == "{LEAVES}":
        os._exit(75)
signal.signal(signal.SIGTERM, told)
say("ready")
while True:
    time.sleep({BREATH} if sys.argv[1] == "{STAYS}" else 3600)
    say("alive")
"""


@dataclass(frozen=True)
class Attempt:
    """One life of the gang that runs whole: the node of each pod, in the order of their ranks."""

    number: int
    nodes: Mapping[str, str]


class Gang:
    """A job of this name; `words` is the folder that its workers write in."""

    def __init__(self, api: Api, name: str, words: Path) -> None:
        self._api = api
        self._name = name
        self._words = words

    def stands(self, after: int) -> Attempt:
        """The attempt later than that, when all of its workers listen for SIGTERM."""
        return clock.wait_for(
            f"{self._name} whole again", lambda: self._whole(after), seconds=PATIENCE, every=0.25
        )

    def told(self, attempt: Attempt) -> list[float]:
        """When SIGTERM reached each worker, in Unix seconds, by rank."""
        found = clock.wait_for(
            f"SIGTERM at all workers of {self._name}",
            lambda: self._moments("told", attempt),
            seconds=NOTICED_WITHIN,
            every=BREATH,
        )
        return [found[pod] for pod in attempt.nodes]

    def last_alive(self, pod: str) -> float:
        """When a worker that stays was last alive."""
        return said(self._words / pod)["alive"]

    def _moments(self, word: str, attempt: Attempt) -> dict[str, float] | None:
        found = {pod: said(self._words / pod).get(word) for pod in attempt.nodes}
        known = {pod: moment for pod, moment in found.items() if moment is not None}
        return known if len(known) == len(found) else None

    def _whole(self, after: int) -> Attempt | None:
        path = f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=spottrain.dev/job%3D{self._name}"
        pods = sorted(
            self._api.get(path).expect("pods")["items"], key=lambda pod: str(pod["metadata"]["name"])
        )
        number = max((int(_label(pod, "attempt")) for pod in pods), default=0)
        nodes = {
            pod["metadata"]["name"]: pod["spec"].get("nodeName", "")
            for pod in pods
            if int(_label(pod, "attempt")) == number
        }
        found = Attempt(number, nodes)
        return found if number > after and len(nodes) == WORKERS and self._moments("ready", found) else None


def said(file: Path) -> dict[str, float]:
    """The last moment of each word in a worker's file; empty while it has said nothing."""
    try:
        lines = file.read_text().splitlines()
    except FileNotFoundError:
        return {}
    return {word: float(moment) for word, moment in (line.split() for line in lines)}


def _label(pod: Object, name: str) -> str:
    return str(pod["metadata"]["labels"][f"spottrain.dev/{name}"])


@contextlib.contextmanager
def running(lab: Lab, name: str, words: Path, conduct: str, window: float) -> Iterator[Gang]:
    """A gang of four for a while; `window`: seconds of notice that its nodes get."""
    path = f"/apis/spottrain.dev/v1alpha1/namespaces/{NAMESPACE}/spottrainingjobs"
    lab.api.call("POST", path, _job(name, words, conduct, window)).expect(f"the job {name}")
    try:
        yield Gang(lab.api, name, words)
    finally:
        lab.api.call("DELETE", f"{path}/{name}").expect(f"deleting the job {name}")
        clock.wait_for(f"the end of {name}", lambda: _none_left(lab.api), seconds=PATIENCE, every=0.5)


def _none_left(api: Api) -> bool:
    """Those that stay are not waited for."""
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
    api.call("DELETE", pods, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
    return not api.get(pods).expect("pods")["items"]


def deleted(lab: Lab, name: str, node: str, words: Path) -> float:
    """Seconds from a bare DELETE of a pod on that node until SIGTERM reaches it."""
    path = f"/api/v1/namespaces/{NAMESPACE}/pods"
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {**_pod(words, LEAVES), "nodeName": node, "restartPolicy": "Never"},
    }
    lab.api.call("POST", path, body).expect(name)
    ripe = f"{name} running for as long as a worker has when its notice comes"
    clock.wait_for(
        ripe, lambda: clock.wall() >= said(words / name).get("ready", math.inf) + LEAD, seconds=PATIENCE
    )
    begun = clock.wall()
    lab.api.call("DELETE", f"{path}/{name}").expect(f"deleting {name}")
    told = clock.wait_for(
        f"SIGTERM at {name}", lambda: said(words / name).get("told"), seconds=NOTICED_WITHIN
    )
    clock.wait_for(
        f"the end of {name}", lambda: lab.api.get(f"{path}/{name}").status == 404, seconds=PATIENCE
    )
    return told - begun


def _job(name: str, words: Path, conduct: str, window: float) -> Object:
    pod = _pod(words, conduct)
    (container,) = pod["containers"]
    container["resources"] = {"limits": {"nvidia.com/gpu": GPUS}}
    return {
        "apiVersion": "spottrain.dev/v1alpha1",
        "kind": "SpotTrainingJob",
        "metadata": {"name": name},
        "spec": {
            "workers": WORKERS,
            "spot": {"window": f"{window:g}s"},
            "checkpoint": {"uri": f"s3://bench/{name}"},
            "template": {"spec": {**pod, "nodeSelector": SPOT}},
        },
    }


def _pod(words: Path, conduct: str) -> Object:
    container = {
        "name": "worker",
        "image": IMAGE,
        "command": ["python3", "-I", "-S", "-c", PROGRAM, conduct],
        "volumeMounts": [{"name": "words", "mountPath": "/words"}],
    }
    volume = {"name": "words", "hostPath": {"path": str(words), "type": "Directory"}}
    return {"containers": [container], "volumes": [volume]}
