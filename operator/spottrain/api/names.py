"""Names that leave the process: API group, labels, annotations, environment of a worker.

Users, dashboards and other tools depend on them; they change only with the API version.
"""

import hashlib

GROUP = "spottrain.dev"
VERSION = "v1alpha1"
KIND = "SpotTrainingJob"
PLURAL = "spottrainingjobs"
API_VERSION = f"{GROUP}/{VERSION}"
MANAGED_BY = f"{GROUP}/operator"
FIELD_MANAGER = "spottrain-operator"
AGENT = "spottrain-agent"

CONDITION_NOTICES = "SpottrainNotices"
"""Type of a Node's condition: True while its agent would hear a notice."""

LABEL_JOB = f"{GROUP}/job"
"""On a worker, its Job and its Service: the name of the SpotTrainingJob."""
LABEL_INDEX = f"{GROUP}/index"
"""On a worker: its index, from 0."""
LABEL_ATTEMPT = f"{GROUP}/attempt"
"""On a worker: the number of its attempt, from 1."""
LABEL_CAPACITY = f"{GROUP}/capacity"
"""On a worker: what it was asked to run on: `only-spot`, `spot` (rather there) or `on-demand`."""

ANNOTATION_ATTEMPT_ID = f"{GROUP}/attempt-id"
"""On a worker: the random name of its attempt."""
ANNOTATION_POOLS = f"{GROUP}/pools"
"""On a worker that may run on spot: digest of the `spot.pools` that it was made with."""
ANNOTATION_GO = f"{GROUP}/go"
"""On a worker: the attempt ID once every worker of the attempt before has ended; restore waits for it."""
ANNOTATION_RECLAIM = f"{GROUP}/reclaim"
"""On a Node: JSON with `cause`, `deadline` (RFC 3339) and `event`; the cloud is about to take the node."""
TAINT_RECLAIM = f"{GROUP}/reclaim"
"""On a Node under notice, with effect NoSchedule; the value is the cause."""
ANNOTATION_DRILL = f"{GROUP}/drill"
"""On a Node: JSON with `id`, `window` (seconds) and `asked` (RFC 3339): its agent is asked for a drill."""
DRILL = "Drill"
"""The cause of a notice that is rehearsed."""
ANNOTATION_HINT = f"{GROUP}/reclaim-hint"
"""On a Node: JSON with `cause`, `event` and `since` (RFC 3339); it may be taken soon."""
ANNOTATION_SAVE = f"{GROUP}/save"
"""On a worker: when such a hint came (RFC 3339); the library saves once for each."""
ANNOTATION_TRAIN_UNTIL = f"{GROUP}/train-until"
"""On a worker whose gang trains on after a notice: when it will be told to stop (RFC 3339)."""
MARK_PRICE = f"{GROUP}/price-per-worker-hour"
"""On a Node: what one worker on it costs for an hour."""
MARK_ON_DEMAND_PRICE = f"{GROUP}/on-demand-price-per-worker-hour"
"""On a spot Node: what one worker would cost for an hour on demand."""
ANNOTATION_TEMPLATE_HASH = f"{GROUP}/template-hash"
"""On our Job: digest of what in it can't be changed later, so that an edit of the template is seen."""

ANNOTATION_MAIN = "kubectl.kubernetes.io/default-container"
"""On a pod: the container that decides how it fares; also the one whose log kubectl shows."""

JOB_NAME_LABEL = "batch.kubernetes.io/job-name"
CONTROLLER_UID_LABEL = "batch.kubernetes.io/controller-uid"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
KUEUE_QUEUE_LABEL = "kueue.x-k8s.io/queue-name"

GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe")

PODINFO_DIRECTORY = "/etc/spottrain"
PODINFO_FILE = f"{PODINFO_DIRECTORY}/annotations"
RENDEZVOUS_PORT = 29500
PROGRESS_PORT = 29580
"""Where worker 0 of a gang tells its step, and its metrics."""
PROGRESS_PORT_NAME = "spottrain"
"""The same port, for those who look for it by name (a PodMonitor)."""
CONTAINER_RESTORE = "spottrain-restore"
CONTAINER_WATCH = "spottrain-watch"
"""Beside a program that doesn't use the library (`spec.checkpoint.directory`): what brings the newest
checkpoint, and the native sidecar that stores those which the program writes."""

_POD_NAME_LIMIT = 63
_HASH_LENGTH = 10


def pod_name(job: str, index: int, attempt: int) -> str:
    """`<job>-<index>-<attempt>`; past 63 characters the job's part is cut and a digest of the whole added.

    63 because the name is the pod's host name too, a DNS label (RFC 1123).
    """
    name = f"{job}-{index}-{attempt}"
    if len(name) <= _POD_NAME_LIMIT:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH_LENGTH]
    tail = f"-{digest}-{index}-{attempt}"
    return job[: _POD_NAME_LIMIT - len(tail)].rstrip("-") + tail
