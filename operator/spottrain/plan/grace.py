"""The grace a worker gets: never past the notice window, and all of it where nothing less is wished."""

import dataclasses

from spottrain.api import clouds, duration
from spottrain.api import spec as specs
from spottrain.plan import snapshot as snap

LEAST_MARGIN = clouds.LEAST_MARGIN
SIDECAR_LEAST = 2.0
"""Seconds that a kubelet gives a native sidecar after the grace is over (minimumGracePeriodInSeconds of its
kuberuntime_container.go), so that a program which uses all of it leaves the sidecar these alone."""


@dataclasses.dataclass(frozen=True)
class Grace:
    """`seconds` is given, `wished` what template or spec asked for (None: nothing), `window` the limit."""

    seconds: int
    wished: float | None
    window: float

    @property
    def capped(self) -> bool:
        """The wish didn't fit."""
        return self.wished is not None and self.wished > self.seconds

    def sentence(self) -> str:
        """Both numbers, for the Warning Event."""
        return (
            f"the grace of {duration.format_seconds(self.wished or 0)} does not fit the notice window of "
            f"{duration.format_seconds(self.window)}: pods get {duration.format_seconds(self.seconds)}. "
            "Set spec.spot.window if the nodes give more notice"
        )


def grace(snapshot: snap.Snapshot) -> Grace:
    """The grace for the next pods of the job."""
    spec = snapshot.valid_spec
    window = spec.spot.window if spec.spot.window is not None else cloud_window(snapshot)
    limit = max(0, int(clouds.usable(window) - beyond(snapshot)))
    wished = spec.spot.grace
    if wished is None:
        wished = spec.template["spec"].get("terminationGracePeriodSeconds")
    return Grace(limit if wished is None else min(limit, int(wished)), wished, window)


def beyond(snapshot: snap.Snapshot) -> float:
    """For how many seconds after the grace something of ours may still run in a pod."""
    spec = snapshot.spec
    return 0.0 if isinstance(spec, specs.InvalidSpecError) or not spec.checkpoint.directory else SIDECAR_LEAST


def shares(seconds: int) -> tuple[int, int]:
    """The grace of a pod with a sidecar, as what the program is told and what is planned for the sidecar.

    The sidecar is told to stop when the program has ended: what the program doesn't use is the sidecar's too.
    A half is for who writes the last checkpoint, and a half for who uploads it.
    """
    return seconds // 2, seconds - seconds // 2


def cloud_window(snapshot: snap.Snapshot) -> float:
    """The shortest window among the clouds of the spot nodes (of all nodes, where none is known as spot)."""
    nodes = [node for node in snapshot.nodes.values() if node.capacity is clouds.Capacity.SPOT]
    providers = {node.provider for node in nodes or snapshot.nodes.values()}
    return min(
        (clouds.WINDOWS.get(one, clouds.DEFAULT_WINDOW) for one in providers), default=clouds.DEFAULT_WINDOW
    )
