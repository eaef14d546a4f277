"""Spot nodes whose notices nobody hears: a reclaim comes without warning there, and the job says so."""

import collections.abc as cabc
import datetime as dt

from spottrain.api import clouds, conditions, node_words
from spottrain.plan import draft as drafts
from spottrain.plan import snapshot as snap

STARTS_WITHIN = dt.timedelta(minutes=3)
"""A node that has just joined pulls the agent's image first."""
SILENT_AFTER = dt.timedelta(minutes=15)
"""An agent speaks every five minutes."""
NAMED = 3


def deaf(nodes: cabc.Iterable[snap.Node], now: dt.datetime) -> list[snap.Node]:
    """The spot nodes, of clouds that give notices, without an agent that would hear one."""
    spot = [one for one in nodes if _gives_notice(one)]
    return [one for one in spot if not _hears(one, now) and not _is_new(one, now)]


def _gives_notice(node: snap.Node) -> bool:
    return node.capacity is clouds.Capacity.SPOT and node.provider in clouds.WINDOWS


def _hears(node: snap.Node, now: dt.datetime) -> bool:
    return (
        node.listens == node_words.ARMED and node.listened is not None and now - node.listened < SILENT_AFTER
    )


def _is_new(node: snap.Node, now: dt.datetime) -> bool:
    return node.created is not None and now - node.created < STARTS_WITHIN


def describe(draft: drafts.Draft) -> None:
    """Say it once, and again when it is over."""
    snapshot = draft.snapshot
    if not snapshot.settings.agents:
        return
    at_work = {pod.node for pod in snapshot.pods if pod.node and not pod.ended}
    nodes = [one for name in sorted(at_work) if (one := snapshot.nodes.get(name)) and _gives_notice(one)]
    for one in nodes:
        if one.created is not None and _is_new(one, snapshot.now) and not _hears(one, snapshot.now):
            draft.wake_at(one.created + STARTS_WITHIN)
    unheard = deaf(nodes, snapshot.now)
    if unheard:
        text = _sentence(unheard, len(nodes), snapshot.now)
        draft.fault(conditions.NOTICES_HEARD, conditions.AGENT_MISSING, text)
    else:
        message = "every spot node that its workers run on has an agent that hears notices"
        draft.mended(conditions.NOTICES_HEARD, conditions.AGENTS_LISTEN, message)


def _sentence(unheard: list[snap.Node], of: int, now: dt.datetime) -> str:
    named = ", ".join(f"{one.name} ({_why(one, now)})" for one in unheard[:NAMED])
    more = ", …" if len(unheard) > NAMED else ""
    return (
        f"{of - len(unheard)} of {of} spot nodes that its workers run on have an agent that hears notices, "
        f"and without warning go {named}{more}: `kubectl get pods -A -o wide -l "
        "app.kubernetes.io/component=agent` and the chart's agent.nodeSelector say why"
    )


def _why(node: snap.Node, now: dt.datetime) -> str:
    if node.listened is None:
        return "no agent"
    return "silent" if now - node.listened >= SILENT_AFTER else node.listens
