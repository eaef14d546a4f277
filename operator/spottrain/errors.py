"""What the library raises.

SpottrainError
├── ConfigError            a setting is missing or makes no sense; the message says what to set
├── StoreError             the checkpoint store did not do what was asked
│   ├── StoreUnavailable   no answer, a time-out or a 5xx: trying again later may help
│   ├── StoreMissing       the bucket, or the directory that should hold the checkpoints, is not there
│   └── StoreDenied        the credentials are refused, or do not allow this
├── CheckpointError        the store answered, and what it holds does not let training start
│   ├── NoSuchStep         the step asked for is not in the lineage
│   ├── AllBroken          there are checkpoints, and every one is damaged
│   ├── LineageBroken      the record of who resumed from what cannot be read
│   ├── NewerFormat        a later version of spottrain has written here, in a format that this one can't read
│   └── OtherWorld         it was saved by another number of ranks, each of which had something of its own
├── StaleAttempt           a newer attempt has taken over this URI; this process must write nothing more
├── BatchError             an input or a result of a batch can't be taken, or inputs were left without one
├── ClusterError           kubectl could not do what was asked, or the cluster isn't fit for it
│   ├── ClusterUnreachable it got no answer: trying again later may help
│   └── NodeUnreachable    the cluster answers, and one of its nodes does not
├── NotReleased            the operator did not say within the time allowed that the last attempt has ended
└── PeerLost               another rank is dead, or hangs
"""


class SpottrainError(Exception):
    """Anything this library raises on purpose."""


class ConfigError(SpottrainError):
    """A setting is missing or makes no sense."""


class StoreError(SpottrainError):
    """The checkpoint store did not do what was asked."""

    retryable = False


class StoreUnavailable(StoreError):
    """No answer, a time-out or a server error: trying again later may help."""

    retryable = True


class StoreMissing(StoreError):
    """The bucket, or the directory that should hold the checkpoints, does not exist."""


class StoreDenied(StoreError):
    """The credentials are refused, or do not allow this."""


class CheckpointError(SpottrainError):
    """The store answered, and what it holds does not let training start."""


class NoSuchStep(CheckpointError):
    """The step asked for is not in the lineage."""


class AllBroken(CheckpointError):
    """There are checkpoints, and every one is damaged."""


class LineageBroken(CheckpointError):
    """The record of who resumed from what cannot be read."""


class NewerFormat(CheckpointError):
    """A later version of spottrain has written here, in a format that this one can't read."""


class OtherWorld(CheckpointError):
    """It was saved by another number of ranks, each of which had something of its own."""


class StaleAttempt(SpottrainError):
    """A newer attempt has taken over this URI; this process must write nothing more."""


class BatchError(SpottrainError):
    """An input or a result of a batch can't be taken, or inputs were left without one."""


class ClusterError(SpottrainError):
    """The cluster could not do what was asked, or isn't fit for it."""


class ClusterUnreachable(ClusterError):
    """Kubectl got no answer: trying again later may help."""


class NodeUnreachable(ClusterError):
    """The cluster answers, and one of its nodes does not: it restarts its kubelet, or is gone for good."""


class NotReleased(SpottrainError):
    """The operator did not say within the time allowed that the last attempt has ended."""


class PeerLost(SpottrainError):
    """Another rank is dead, or hangs."""
