"""SIGTERM for what a shell has started.

The kubelet's SIGTERM goes to PID 1 of a container. Linux gives PID 1 no default action, so a shell there
drops it, and with `sh -c "cd /app && python train.py; echo done"` training hears nothing until it is killed.
A preStop hook, which the kubelet runs right before, passes the signal on to whoever is next below the shells.
"""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

_SHELLS = frozenset({"ash", "bash", "dash", "ksh", "sh", "zsh"})

# With nothing but what each POSIX shell has built in. Who catches SIGTERM (bit 14 of SigCgt) gets it, and
# what is below that is its own business: data-loader workers, torchrun's ranks. Who doesn't is looked
# through, or dies of it when there is nothing below. A PID 1 that catches it gets the kubelet's.
HAND_DOWN = """\
catches() {
  while read -r name mask; do
    case $name$mask in SigCgt:*[4567cdef]???) return 0 ;; esac
  done <"/proc/$1/status"
  return 1
}
tell() {
  below=
  catches "$1" || read -r below <"/proc/$1/task/$1/children"
  if [ -z "$below" ]; then
    [ "$1" = 1 ] || kill -TERM "$1"
  else
    for child in $below; do tell "$child"; done
  fi
}
tell 1 2>/dev/null
:
"""


def stop_hook(container: Mapping[str, Any], pod: Mapping[str, Any]) -> dict[str, Any]:
    """`lifecycle`, for a container whose command is a shell or a script of one; else nothing.

    Not where the template has a preStop of its own, nor where PID 1 belongs to others too.
    """
    given = container.get("lifecycle") or {}
    shared = pod.get("hostPID") or pod.get("shareProcessNamespace")
    if shared or given.get("preStop") or not _is_shell(container.get("command") or [""]):
        return {}
    return {"lifecycle": {**given, "preStop": {"exec": {"command": ["sh", "-c", HAND_DOWN]}}}}


def _is_shell(command: list[str]) -> bool:
    first = PurePosixPath(command[0])
    return first.name in _SHELLS or first.suffix == ".sh"
