"""What the ranks tell each other at the end of a step: integers, of which every rank gets the largest."""

from dataclasses import dataclass
from typing import Self

from spottrain import errors


@dataclass(frozen=True)
class Agreement:
    """One round. What only rank 0 decides (`save`, `nonce`, `gap`) the others leave at 0."""

    step: int
    minus_step: int
    """With `step` it shows whether all ranks are at the same one."""
    stop: int = 0
    """Rank + 1 of a rank that was told to stop, the highest; 0 when none was."""
    stale: int = 0
    """1 when some rank met a newer attempt."""
    save: int = 0
    """1 when a save is due."""
    nonce: int = 0
    """What the next save is to be named."""
    gap: int = 0
    """After how many steps the ranks confer again."""

    @classmethod
    def heard(cls, values: list[int]) -> Self:
        """The outcome of a round; SpottrainError when the ranks are not at the same step."""
        agreed = cls(*values)
        if agreed.step != -agreed.minus_step:
            raise errors.SpottrainError(
                f"ranks are at different steps ({-agreed.minus_step} and {agreed.step}): "
                "should_save(step) must be called on every rank after each step"
            )
        return agreed

    def values(self) -> list[int]:
        """As integers."""
        return [self.step, self.minus_step, self.stop, self.stale, self.save, self.nonce, self.gap]
