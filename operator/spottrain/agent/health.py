"""Whether the agent would hear a notice. Pure: time is given."""

import dataclasses

BLIND_AFTER = 30.0
"""Seconds of failing at a stretch after which a source is blind. A metadata service restarts in less."""


@dataclasses.dataclass(frozen=True)
class Health:
    """Of one source. Moments are monotonic seconds; `failing`: since when it fails, without a break."""

    succeeded: float | None = None
    failing: float | None = None
    fault: str = ""

    def after_success(self, now: float) -> "Health":
        """An answer came."""
        return Health(succeeded=now)

    def after_fault(self, began: float, fault: str) -> "Health":
        """None came, or nonsense, to the look that began then."""
        since = began if self.failing is None else self.failing
        return Health(self.succeeded, since, fault)

    def blind(self, now: float) -> bool:
        """It has failed for so long that a notice might have been missed."""
        return self.failing is not None and now - self.failing >= BLIND_AFTER

    def armed(self, now: float) -> bool:
        """It has answered, and hasn't gone blind since."""
        return self.succeeded is not None and not self.blind(now)
