"""What a grace counts on, beside what machines really had between their notice and their end.

A cloud's window is a promise at best. Where machines were lately taken from under workers whose grace was not
over, a save that needs the whole of it is lost: the job says so.
"""

from spottrain.api import clouds, conditions, duration
from spottrain.plan import draft as drafts
from spottrain.plan import grace
from spottrain.plan import snapshot as snap

SEVERAL = 3
BLUR = 5.0
"""Seconds that a measured window may be too short: a machine ends between two renewals of its lease."""


def describe(draft: drafts.Draft) -> None:
    """Say it once several machines have shown it, and take it back when it is no longer so."""
    snapshot = draft.snapshot
    if not snapshot.windows:
        return
    text = _sentence(snapshot)
    if text:
        draft.fault(conditions.WINDOW_HOLDS, conditions.WINDOW_TOO_SHORT, text)
    else:
        message = "machines last as long after their notice as the workers' grace counts on"
        draft.mended(conditions.WINDOW_HOLDS, conditions.WINDOW_LASTS, message)


def _sentence(snapshot: snap.Snapshot) -> str:
    if isinstance(snapshot.spec, Exception):
        return ""
    granted = grace.grace(snapshot).seconds
    for provider in sorted({node.provider for node in _spot_nodes(snapshot)}):
        ends = [one for one in snapshot.windows if one.provider == provider]
        short = sorted(one.seconds for one in ends if one.cut_off and one.seconds + BLUR < granted)
        if len(short) >= SEVERAL:
            counted = duration.format_seconds(granted)
            least, most = (duration.format_seconds(round(one)) for one in (short[0], short[-1]))
            return (
                f"{len(short)} of the last {len(ends)} machines of {provider} ended {least} to {most} after "
                f"their notice with a worker at work, and workers count on {counted}: a save that takes "
                "longer is lost. Set spec.spot.window to what holds, and save more often"
            )
    return ""


def _spot_nodes(snapshot: snap.Snapshot) -> list[snap.Node]:
    """Those that the job's workers are on."""
    nodes = (snapshot.nodes.get(pod.node) for pod in snapshot.pods if not pod.ended)
    return [node for node in nodes if node is not None and node.capacity is clouds.Capacity.SPOT]
