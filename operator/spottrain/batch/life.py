"""How a worker that has no peers ends: at its own end, or because it was told to.

    SIGTERM ──► `stopping`: the item under way is finished, the block is left ──► exit code 75
          └───► the grace is over before ──► `over` ──► exit code 75

The last word says which of the two it was; docs/library.md.
"""

import contextlib
import os
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from spottrain.train import session, settings, signals, termination, watchdog
from spottrain.train.clock import Clock, SystemClock
from spottrain.train.log import Log

_HAND_BACK_SECONDS = 2.0
FINISHED, PREEMPTED, STALE = termination.FINISHED, termination.PREEMPTED, termination.STALE


@dataclass(frozen=True)
class Hooks:
    """What the owner of a life does. `asked` and `over` are called in a thread."""

    asked: Callable[[], None] = lambda: None
    """SIGTERM has come."""
    over: Callable[[], None] = lambda: None
    """The grace is over; the process ends when this returns."""
    word: Callable[[str], termination.LastWord] = lambda state: termination.LastWord(
        state, step=None, resumed_from=None, saved_step=None, save_seconds=None
    )
    """The last word, for a state."""


class Life:
    """Watches for SIGTERM between `start`, in the main thread, and `close`."""

    def __init__(self, ending: settings.Ending, clock: Clock, log: Log, hooks: Hooks) -> None:
        self._ending = ending
        self._log = log
        self._hooks = hooks
        self._signal = signals.StopSignal(clock, self._on_signal)
        self._watchdog = watchdog.Watchdog(
            clock, grace=ending.grace, alone=lambda: True, limit=lambda: 0.0, give_up=self._give_up
        )

    @property
    def stopping(self) -> bool:
        """Whether SIGTERM has come: finish what is under way, and leave."""
        return self._signal.seen

    def start(self) -> None:
        """SIGTERM asks for a stop from now on."""
        self._signal.install()
        self._watchdog.start()

    def close(self) -> None:
        """The process is on its way out, or goes on with something else."""
        self._watchdog.dismiss()
        if self.stopping:
            self._signal.ignore()
        else:
            self._signal.uninstall()

    def say(self, state: str) -> None:
        """Leave the last word."""
        termination.leave(self._ending.termination_log, self._hooks.word(state), self._log)

    def end_preempted(self, error: BaseException | None) -> None:
        """Raise SystemExit with the code for it, whatever `error` the program has made of SIGTERM."""
        if error is not None and not isinstance(error, SystemExit):
            traceback.print_exception(error)
        self.say(PREEMPTED)
        raise SystemExit(session.PREEMPTED_EXIT)

    def _on_signal(self, at: float) -> None:
        self._watchdog.stop_asked(at)
        # Said now, and again at the end: the grace may end sooner than we were told.
        self.say(PREEMPTED)
        self._log.info("stopping", "SIGTERM: finishing what is under way")
        self._hooks.asked()

    def _give_up(self, why: str, _: float) -> None:
        self._log.warning("gave-up", f"ending now, with an item under way: {why}")
        try:
            self._hooks.over()
            self.say(PREEMPTED)
            self._log.flush()
        finally:
            os._exit(session.PREEMPTED_EXIT)


@contextlib.contextmanager
def worker(hand_back: Callable[[], None]) -> Iterator[Life]:
    """For programs that are fed by a queue: a block that the program leaves early once `stopping` is true.

    `hand_back()` gives back what the program has taken and not finished, so that others get it at once. It
    is called when the block is left after SIGTERM, or by an exception; or in a thread, when the grace ends
    while an item is under way. After SIGTERM the process then ends with 75. Needs no place for results.
    """
    told, clock = settings.ending(os.environ), SystemClock()
    # Handing back takes a request or two, so it begins before the watchdog's own margin.
    ending = settings.Ending(max(told.grace - _HAND_BACK_SECONDS, 0.0), told.termination_log)
    life = Life(ending, clock, Log(clock), Hooks(over=hand_back))
    life.start()
    try:
        try:
            yield life
        except BaseException as error:
            hand_back()
            if life.stopping:
                life.end_preempted(error)
            raise
        if life.stopping:
            hand_back()
            life.end_preempted(None)
        life.say(FINISHED)
    finally:
        life.close()
