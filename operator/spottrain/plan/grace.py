"""The grace a worker gets: never past the notice window, and all of it where nothing less is wished."""

import dataclasses

from spottrain.api import clouds, duration
from spottrain.plan import snapshot as snap

LEAST_MARGIN = 2.0
MARGIN_SHARE = 0.05


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
    limit = max(0, int(window - max(LEAST_MARGIN, MARGIN_SHARE * window)))
    wished = spec.spot.grace
    if wished is None:
        wished = spec.template["spec"].get("terminationGracePeriodSeconds")
    return Grace(limit if wished is None else min(limit, int(wished)), wished, window)


def cloud_window(snapshot: snap.Snapshot) -> float:
    """The shortest window among the clouds of the spot nodes (of all nodes, where none is known as spot)."""
    nodes = [node for node in snapshot.nodes.values() if node.capacity is clouds.Capacity.SPOT]
    providers = {node.provider for node in nodes or snapshot.nodes.values()}
    return min(
        (clouds.WINDOWS.get(one, clouds.DEFAULT_WINDOW) for one in providers), default=clouds.DEFAULT_WINDOW
    )
