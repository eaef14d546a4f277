"""The operator and the demo's namespace in a cluster."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from demo import clock, manifests, target
from demo.kubectl import Programs
from demo.manifests import NAMESPACE, SYSTEM_NAMESPACE
from demo.screen import Screen
from demo.target import Site

RELEASE = "spottrain"
OPERATOR_SECONDS = 120


def operator(
    site: Site, chart: Path, screen: Screen, more: Mapping[str, Any] | None = None, *, agent: str = ""
) -> None:
    """Install the chart, or upgrade what an earlier demo installed, and wait until the operator is ready.

    `more`: values of the chart beside those that the cluster needs. `agent`: the cloud whose notices an agent
    on each spot node hears; it uses the node's network, which only the level `privileged` allows.
    """
    level = "privileged" if agent else "restricted"
    site.programs.apply(manifests.secured_namespace(SYSTEM_NAMESPACE, level))
    _clear_interrupted(site.programs)
    screen.say(f"helm: chart {RELEASE} into namespace {SYSTEM_NAMESPACE}")
    site.programs.run(
        *("helm", "upgrade", "--install", RELEASE, str(chart), "--namespace", SYSTEM_NAMESPACE),
        "--take-ownership",  # the resource may be there already, from `kubectl apply` or another release
        *("--values", "-", "--wait", "--timeout", f"{OPERATOR_SECONDS}s"),
        stdin=json.dumps({**values(site, agent), **(more or {})}),
        timeout=OPERATOR_SECONDS + 30,
    )


def _clear_interrupted(programs: Programs) -> None:
    """An install that was cut short blocks every later one; the resource and its jobs outlive its removal."""
    pending = programs.run("helm", "list", "--namespace", SYSTEM_NAMESPACE, "--pending", "--short").split()
    if RELEASE in pending:
        programs.run("helm", "uninstall", RELEASE, "--namespace", SYSTEM_NAMESPACE, "--wait")


def values(site: Site, agent: str = "") -> dict[str, Any]:
    """The chart's values for this cluster."""
    image = {"repository": site.operator.repository, "tag": site.operator.tag, "digest": site.operator.digest}
    found: dict[str, Any] = {
        "image": {key: value for key, value in image.items() if value},
        "tolerations": [dict(one) for one in target.common_tolerations(site.nodes)],
    }
    if agent:
        found["agent"] = {
            "enabled": True,
            "provider": agent,
            "nodeSelector": dict(site.workers.node_selector),
        }
    if site.workers.node_selector:
        found["nodeSelector"] = dict(site.workers.node_selector)
    if site.operator.version:
        # The name of the image stays the same when its content changes: this makes the pod change with it.
        found["podAnnotations"] = {"spottrain.dev/image-version": site.operator.version}
    return found


def namespace(site: Site, files: Mapping[str, str], screen: Screen) -> None:
    """A fresh namespace in place of one that an earlier run left, with the store's keys and the program.

    `files`: the text of each by its name; the workers run train.py.
    """
    remove_namespace(site.programs, screen)
    site.programs.apply(manifests.namespace(NAMESPACE))
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
