"""Spot nodes whose notices nobody hears: a reclaim comes without warning there, and the job says so."""

import collections.abc as cabc
import datetime as dt

from spottrain.api import clouds, conditions, node_words, status
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
    """Say it once, and again when it is over. Between two attempts, what was said of the last one stands."""
    snapshot = draft.snapshot
    if not snapshot.settings.agents:
        return
    at_work = {pod.node for pod in snapshot.pods if pod.node and not pod.ended}
    known = [one for name in sorted(at_work) if (one := snapshot.nodes.get(name))]
    spot = [one for one in known if one.capacity is clouds.Capacity.SPOT]
    for one in spot:
        if _gives_notice(one) and _is_new(one, snapshot.now) and not _hears(one, snapshot.now):
            draft.wake_at((one.created or snapshot.now) + STARTS_WITHIN)
    unheard = deaf(spot, snapshot.now)
    cloudless = [one for one in spot if not _gives_notice(one) and one.listens == node_words.NO_NOTICES]
    if unheard:
        text = _sentence(unheard, sum(map(_gives_notice, spot)), snapshot.now)
        draft.fault(conditions.NOTICES_HEARD, conditions.AGENT_MISSING, text)
    elif cloudless:
        text = _no_cloud(cloudless, len(spot))
        draft.condition(conditions.NOTICES_HEARD, None, conditions.NO_CLOUD, text)
    elif conditions.find(draft.status.conditions, conditions.NOTICES_HEARD):
        _take_back(draft, spot)


def _take_back(draft: drafts.Draft, spot: list[snap.Node]) -> None:
    """What was said is over; that each node is heard is said of some node, never of none."""
    if spot and all(_hears(one, draft.snapshot.now) for one in spot):
        message = "every spot node that its workers run on has an agent that hears notices"
        draft.condition(conditions.NOTICES_HEARD, True, conditions.AGENTS_LISTEN, message)
    elif not spot and draft.status.phase is status.Phase.RUNNING:
        message = "none of its workers runs on a spot node"
        draft.condition(conditions.NOTICES_HEARD, None, conditions.NOT_ON_SPOT, message)


def _sentence(unheard: list[snap.Node], of: int, now: dt.datetime) -> str:
    named = _named([f"{one.name} ({_why(one, now)})" for one in unheard])
    return (
        f"{of - len(unheard)} of {of} spot nodes that its workers run on have an agent that hears notices, "
        f"and without warning go {named}: `kubectl get pods -A -o wide -l "
        "app.kubernetes.io/component=agent` and the chart's agent.nodeSelector say why"
    )


def _no_cloud(cloudless: list[snap.Node], of: int) -> str:
    return (
        f"on {len(cloudless)} of {of} spot nodes that its workers run on the agent knows no cloud to hear "
        f"notices from ({node_words.NO_NOTICES}): {_named([one.name for one in cloudless])}; that such a "
        "node is lost is only known when it falls silent. On a cloud that gives notices, set the chart's "
        "agent.provider"
    )


def _named(texts: list[str]) -> str:
    return ", ".join(texts[:NAMED]) + (", …" if len(texts) > NAMED else "")


def _why(node: snap.Node, now: dt.datetime) -> str:
    if node.listened is None:
        return "no agent"
    return "silent" if now - node.listened >= SILENT_AFTER else node.listens
