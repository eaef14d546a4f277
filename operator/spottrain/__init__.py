"""GPU training on preemptible Kubernetes nodes, as one object.

What a training program imports: `spottrain.session`. Importing the package itself loads nothing else.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spottrain.train.session import Run, session

__all__ = ["Run", "session"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from spottrain.train import session as module  # noqa: PLC0415 - only programs that train pay for it

        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
