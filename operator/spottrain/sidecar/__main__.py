"""`python -m spottrain.sidecar restore|watch`: what the containers beside a program run."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from spottrain import errors
from spottrain.checkpoint import location
from spottrain.sidecar import bringing, watching
from spottrain.train import patience, settings, signals
from spottrain.train.clock import Clock, SystemClock
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
    words = Log(clock)
    place = patience.beginning(location.open_store(told.location), told, clock, words, lambda: False)
    bringing.Bringer(told, root, leads, place, clock, words).bring()


def _watch(env: Mapping[str, str]) -> None:
    told, root = _told(env)
    clock = SystemClock()
    words = Log(clock)
    stop = signals.StopSignal(clock, lambda _: None)
    stop.install()
    try:
        _watcher(told, root, clock, words, stop).run(stop)
    except errors.StaleAttempt as error:
        words.error("stale", str(error))
        # Nothing is to be written any more. A process that ended for it would be started anew.
        while not stop.wait(watching.LOOK_SECONDS):
            pass
    words.flush()
    # An upload that was given up may still run, and Python's own farewell would wait for it.
    os._exit(0)


def _watcher(
    told: settings.Settings, root: Path, clock: Clock, words: Log, stop: signals.StopSignal
) -> watching.Watcher:
    """The watcher, once the store answers.

    A process that ended because it doesn't would be started anew later and later, and miss the program's end.
    """
    place = location.open_store(told.location)
    while True:
        try:
            return watching.Watcher(told, root, place, clock, words)
        except errors.StoreError as error:
            words.warning("not-stored", f"{error}: trying again")
            if stop.wait(watching.RETRY_SECONDS):
                clock.sleep(watching.LAST_RETRY_SECONDS)


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
