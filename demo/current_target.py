"""The demo on the cluster of the current kubeconfig (kind, a cloud): pods are evicted, machines live on."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from demo import facts, target
from demo.errors import DemoError
from demo.kubectl import Programs
from demo.manifests import NAMESPACE, Store, Workers
from demo.screen import Screen
from demo.target import OperatorImage, Site

CORDONED = "spottrain.dev/cordoned-by-demo"
KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


@dataclass(frozen=True)
class Given:
    """What the user passed, see `parse`."""

    image: str
    worker_image: str
    store: Store
    host_path: str = ""


def parse(env: Mapping[str, str]) -> Given:
    """What only the user can know; DemoError with all that is missing."""
    needed = {
        "IMAGE": "the operator's image, in a registry that the cluster pulls from",
        "WORKER_IMAGE": "an image with torch, scikit-learn and spottrain",
        "STORE_URI": "where checkpoints go, such as s3://bucket/prefix",
    }
    missing = [f"{name}=... ({what})" for name, what in needed.items() if not env.get(name)]
    if missing:
        raise DemoError(f"CLUSTER=current also needs {'; '.join(missing)}: see docs/demo.md")
    if not env["STORE_URI"].startswith("s3://"):
        raise DemoError(f"STORE_URI must be s3://bucket/prefix, not {env['STORE_URI']}")
    region = env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION") or ""
    keys = {name: env[name] for name in KEYS if env.get(name)}
    return Given(
        image=env["IMAGE"],
        worker_image=env["WORKER_IMAGE"],
        store=Store(env["STORE_URI"].rstrip("/"), env.get("STORE_ENDPOINT", ""), region, keys),
        host_path=env.get("TORCH_HOST_PATH", ""),
    )


class CurrentTarget:
    """The cluster that kubectl talks to."""

    faults = (facts.EVICT, facts.EVICT)
    agent = ""

    def __init__(self, given: Given, screen: Screen) -> None:
        self._given = given
        self._screen = screen
        self._programs = Programs()

    def prepare(self) -> Site:
        """Nothing is built: look at what is there."""
        for program in ("kubectl", "helm"):
            self._programs.run(program, "version", "--client" if program == "kubectl" else "--short")
        context = self._programs.kubectl("config", "current-context").strip()
        self.heal()
        found = target.nodes(self._programs.get("nodes")["items"])
        usable = [node for node in found if node.schedulable]
        if not usable:
            raise DemoError(f"the cluster of context {context} has no schedulable worker node")
        self._screen.say(f"the cluster of context {context}: {len(usable)} nodes for workers")
        floor = int(any(node.capacity.fills_floor for node in usable))
        if not floor:
            self._screen.say("no node is marked as on-demand, so the job asks for no on-demand floor")
        workers = Workers(
            self._given.worker_image,
            floor=floor,
            host_path=self._given.host_path,
            tolerations=target.common_tolerations(usable),
        )
        return Site(
            self._programs, OperatorImage(self._given.image), workers, self._given.store, tuple(usable)
        )

    def strike(self, kind: str, *, node: str, pod: str) -> None:
        """Cordon the node, if another one is left for its pods, and evict the worker."""
        del kind
        if any(other.name != node and other.schedulable for other in self._nodes()):
            self._programs.kubectl("annotate", "node", node, f"{CORDONED}=true", "--overwrite")
            self._programs.kubectl("cordon", node)
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": NAMESPACE},
        }
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/eviction"
        self._programs.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(eviction))

    def heal(self) -> None:
        """End the cordons that a demo made, and no others."""
        for item in self._programs.get("nodes")["items"]:
            if CORDONED in (item["metadata"].get("annotations") or {}):
                name = item["metadata"]["name"]
                self._programs.kubectl("uncordon", name)
                self._programs.kubectl("annotate", "node", name, f"{CORDONED}-")

    def farewell(self) -> str:
        """The operator stays."""
        return (
            "The operator stays installed. Look around: kubectl -n spottrain-system get pods\n"
            "Remove it: helm uninstall spottrain -n spottrain-system; kubectl delete ns spottrain-system; "
            "kubectl delete crd spottrainingjobs.spottrain.dev"
        )

    def _nodes(self) -> tuple[target.Node, ...]:
        return target.nodes(self._programs.get("nodes")["items"])
