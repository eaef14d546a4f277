"""What the library tells people and programs: a sentence, then `event=… key=value … time=<Unix seconds>`.

Both halves are stable: docs/library.md lists the events.
"""

import logging
import sys

from spottrain.train.clock import Clock

NAME = "spottrain"


class Log:
    """Writes to the logger `spottrain`; to standard error when the program has configured no logging."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._logger = logging.getLogger(NAME)
        if not self._logger.hasHandlers():
            handler = logging.StreamHandler(sys.stderr)
            handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
            self._logger.addHandler(handler)
        if self._logger.level == logging.NOTSET:
            self._logger.setLevel(logging.INFO)

    def info(self, event: str, sentence: str, **fields: object) -> None:
        """Something that is as it should be."""
        self._write(logging.INFO, event, sentence, fields)

    def warning(self, event: str, sentence: str, **fields: object) -> None:
        """Something that the library gets over by itself."""
        self._write(logging.WARNING, event, sentence, fields)

    def error(self, event: str, sentence: str, **fields: object) -> None:
        """Something that costs work."""
        self._write(logging.ERROR, event, sentence, fields)

    def flush(self) -> None:
        """Push out what is buffered, before a process ends without Python's own farewell."""
        for handler in (*self._logger.handlers, *logging.getLogger().handlers):
            handler.flush()
        sys.stdout.flush()
        sys.stderr.flush()

    def _write(self, level: int, event: str, sentence: str, fields: dict[str, object]) -> None:
        pairs = {"event": event, **fields, "time": f"{self._clock.unix():.3f}"}
        suffix = " ".join(f"{key}={_word(value)}" for key, value in pairs.items())
        self._logger.log(level, "%s %s", sentence, suffix)


def _word(value: object) -> str:
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    return "_".join(text.split()) or "-"
