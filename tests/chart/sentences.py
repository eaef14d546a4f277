"""What the resource says to a mistake, word by word."""

NAME_LENGTH = (
    "metadata.name must have at most 52 characters, because the names of the pods add a worker's index "
    "and an attempt's number to it: choose a shorter name"
)
NAME_LETTERS = (
    "metadata.name must start with a letter, hold only lower-case letters, digits and '-', and not end "
    "with '-', because it also names a Service: for example train-1, not 1-train or train.1"
)
FLOOR_TOO_HIGH = (
    "spec.spot.onDemandFloor is more than spec.workers: at most all workers can be on on-demand nodes, "
    "so lower the floor or raise the workers"
)
FLOOR_FORM = (
    "spec.spot.onDemandFloor must be a whole number of workers or a percentage from 0% to 100%, for "
    'example 1 or "25%"'
)
NO_POOL = (
    "an entry of spec.spot.pools allows a zone, an instanceType or both: write at least one of them, or "
    "leave the entry out"
)
POOL_TWICE = (
    "spec.spot.pools names the same zone and instanceType twice: keep one of the two entries, with the "
    "weight that is meant"
)
LABEL = (
    "must be the value of a node's label: letters, digits, '-', '_' and '.', for example us-east-1a or "
    "p4d.24xlarge"
)
NO_CHECKPOINT = (
    "spec.checkpoint is required, because without one a reclaimed node takes all work with it: set "
    "spec.checkpoint.uri, for example s3://bucket/prefix"
)
NO_URI = (
    "spec.checkpoint.uri is required in a gang, whose workers all go on from the same checkpoint: set it, "
    "for example to s3://bucket/prefix"
)
URI_ADDED = (
    "spec.checkpoint.uri can't be added or taken away later, as work would be lost or done twice: create a "
    "new job"
)
GANG_TOO_LARGE = (
    "spec.workers is more than 1000, which only spec.mode Independent can have: the workers of a gang all "
    "train together"
)
PARALLEL_GANG = (
    "spec.parallelism is only used with spec.mode Independent: the workers of a gang all run at once, so "
    "leave it out"
)
GANG_PER_INDEX = (
    "spec.maxFailuresPerIndex is only used with spec.mode Independent: a gang fails as a whole, so set "
    "spec.maxFailures"
)
INDEPENDENT_PROGRESS = (
    "spec.progressTimeout is only used with spec.mode Gang: leave it out, and set activeDeadlineSeconds in "
    "spec.template.spec to end a worker that hangs"
)
INDEPENDENT_DEADLINE = (
    "spec.completeBy is only used with spec.mode Gang, of which the work left is known: leave it out, and "
    "set spec.spot.onDemandFloor for workers that must not wait for spot"
)
INDEPENDENT_KEEPS = (
    "spec.spot.keepTraining is only used with spec.mode Gang, of which the saves are measured: leave it out"
)
FALLBACK_TOO_LATE = (
    "spec.spot.fallback.after is longer than spec.placementTimeout (both 15m by default), after which a gang "
    "that is not whole gives its nodes back and waits anew: lower the one or raise the other"
)
NO_TIME = (
    "must be a date and a time with its zone, for example 2026-12-01T08:00:00Z or 2026-12-01T09:00:00+01:00"
)
GANG_FAILED_INDEXES = (
    "spec.maxFailedIndexes is only used with spec.mode Independent: a gang fails as a whole, so set "
    "spec.maxFailures"
)
FLOOR_ABOVE_PARALLELISM = (
    "spec.spot.onDemandFloor is more than spec.parallelism: it is a part of the workers that run at once, "
    "so lower the floor or raise the parallelism (50 if it is left out)"
)
NAMES_FOR_NOBODY = (
    "spec.workerHostnames is only used with spec.mode Gang: independent workers don't meet, so leave it out"
)
MODE_CHANGED = "spec.mode can't be changed: delete the job and create it anew with the other mode"
NOT_ABSOLUTE = (
    "spec.checkpoint.uri must be absolute, so that it outlives the pod: s3://bucket/prefix, "
    "gs://bucket/prefix, az://container/prefix, or file:///path on a shared volume; a relative or local path "
    "is lost with its pod"
)
BUCKET_FORM = (
    "spec.checkpoint.uri must read s3://bucket/prefix: a bucket in lower-case letters, digits, '.' and "
    "'-', and a prefix without spaces, '?', '#' or empty parts"
)
GCS_FORM = (
    "spec.checkpoint.uri must read gs://bucket/prefix: a bucket in lower-case letters, digits, '.', '_' and "
    "'-', and a prefix without spaces, '?', '#' or empty parts"
)
AZURE_FORM = (
    "spec.checkpoint.uri must read az://container/prefix: a container in lower-case letters, digits and "
    "'-', and a prefix without spaces, '?', '#' or empty parts"
)
FILE_FORM = (
    "spec.checkpoint.uri must read file:///path, with three slashes and a path without spaces, '?', '#'"
    " or empty parts"
)
DOTS = "spec.checkpoint.uri must not have '.' or '..' as a part of its path: write the path out"
IN_THE_POD = (
    "spec.checkpoint.uri is a path inside the pod, and what is there goes with the pod: mount a shared "
    "volume (persistentVolumeClaim, nfs, csi, hostPath, azureFile or cephfs; not read-only) at that "
    "path or above it in spec.template, or use s3://bucket/prefix"
)
URI_CHANGED = (
    "spec.checkpoint.uri can't be changed, as a running job would lose its work: create a new job with "
    "the other uri"
)
HOSTNAMES_CHANGED = "spec.workerHostnames can't be changed: delete the job and create it anew"
NO_URI_FOR_DIRECTORY = (
    "spec.checkpoint.directory needs spec.checkpoint.uri, where what the program writes is kept: set it, for "
    "example to s3://bucket/prefix"
)
DIRECTORY_FORM = (
    "spec.checkpoint.directory must be an absolute path without '.', '..', colons, spaces or a slash at its "
    "end, for example /checkpoints"
)
DIRECTORY_INTERVAL = (
    "spec.checkpoint.interval is only used by programs that use the library: with spec.checkpoint.directory "
    "the program saves when it likes, so leave the interval out"
)
DIRECTORY_IN_URI = (
    "spec.checkpoint.directory and spec.checkpoint.uri lie in each other: what is stored would be taken for "
    "what the program writes, so choose two separate directories"
)
DIRECTORY_VOLUME = (
    "spec.checkpoint.directory is each worker's own and starts empty, as what an earlier life left there "
    "could be taken for the newest: mount an emptyDir or an ephemeral volume at that path (not read-only), "
    "or none"
)
STEP_MISSING = "spec.checkpoint.restore is Step, so spec.checkpoint.step must say which one"
STEP_UNUSED = (
    "spec.checkpoint.step is only used with restore Step: set spec.checkpoint.restore to Step, or leave"
    " the step out"
)
DURATION = "must be a duration: numbers with a unit (ms, s, m, h or d), for example 90s, 2m or 1h30m"
LONGER = "must be a duration longer than 0: numbers with a unit (ms, s, m, h or d), for example 30m or 2h"
INTERVAL = "must be auto or a duration: numbers with a unit (ms, s, m, h or d), for example 90s, 10m or 1h30m"
ENDPOINT = (
    "spec.checkpoint.endpoint must be the URL of a store without a path, for example "
    "http://minio.minio:9000, or be left out for the cloud's own"
)
PRICE = "must be the price of one worker for one hour, above 0 and below 1000000, such as 1.10"
NO_CONTAINERS = "spec.template.spec.containers is empty: name at least the container that trains"
RESTART_POLICY = (
    "spec.template.spec.restartPolicy must be left out or be Never: the operator restarts workers "
    "itself, as new pods that go on from the newest checkpoint"
)
ATTEMPT = (
    "status.attempt never goes down: whoever writes this has read an old state and must read the job again"
)
