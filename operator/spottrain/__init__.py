"""GPU training on preemptible Kubernetes nodes, as one object.

What a training program imports: `spottrain.session`. Importing the package itself loads next to nothing.
"""

from typing import TYPE_CHECKING, Any

from spottrain import pid1

if TYPE_CHECKING:
    from spottrain.train.session import Run, session

__all__ = ["Run", "session"]

pid1.install()


def __getattr__(name: str) -> Any:
    if name in __all__:
        from spottrain.train import session as module  # noqa: PLC0415 - only programs that train pay for it

        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
