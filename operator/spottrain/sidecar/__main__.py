"""`python -m spottrain.sidecar restore|watch`: what the containers beside a program run."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from spottrain import errors
from spottrain.checkpoint import location
from spottrain.sidecar import bringing, watching
from spottrain.train import settings, signals
from spottrain.train.clock import SystemClock
from spottrain.train.log import Log

_USAGE = "usage: python -m spottrain.sidecar restore|watch\n"


def main() -> None:
    """Do what the one argument says."""
    acts = {"restore": _restore, "watch": _watch}
    if len(sys.argv) != 2 or sys.argv[1] not in acts:
        sys.stderr.write(_USAGE)
        sys.exit(2)
    acts[sys.argv[1]](os.environ)


def _restore(env: Mapping[str, str]) -> None:
    # Restored files are the program's, whoever that is: it must be able to remove them when it rotates.
    os.umask(0)
    told, root = _told(env)
    clock = SystemClock()
    leads = bringing.leads(told, env.get("SPOTTRAIN_INDEX", ""))
    place = location.open_store(told.location)
    bringing.Bringer(told, root, leads, place, clock, Log(clock)).bring()


def _watch(env: Mapping[str, str]) -> None:
    told, root = _told(env)
    clock = SystemClock()
    log = Log(clock)
    stop = signals.StopSignal(clock, lambda _: None)
    stop.install()
    try:
        watching.Watcher(told, root, location.open_store(told.location), clock, log).run(stop)
    except errors.StaleAttempt as error:
        watching.taken_over(error, log, stop)
    log.flush()
    # An upload that was given up may still run, and Python's own farewell would wait for it.
    os._exit(0)


def _told(env: Mapping[str, str]) -> tuple[settings.Settings, Path]:
    told = settings.read(env, settings.Arguments())
    directory = env.get("SPOTTRAIN_CHECKPOINT_DIRECTORY", "")
    if not directory or not told.attempt_id:
        raise errors.ConfigError(
            "set SPOTTRAIN_CHECKPOINT_DIRECTORY and SPOTTRAIN_ATTEMPT_ID, as the operator does in the "
            "containers that it adds for spec.checkpoint.directory"
        )
    root = Path(directory)
    if not root.is_dir():
        raise errors.ConfigError(f"{directory} is no directory: mount the volume of checkpoints there")
    return told, root


if __name__ == "__main__":
    main()
