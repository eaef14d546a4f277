"""When answers stop coming and come again: connections of before that moment are not trusted.

A firewall or NAT that forgot its connections tells neither end. A request in flight then has no answer, which
shows within its timeout; but a watch is silent, which it may be for a minute in any case. The first answer
after a request that had none says that the way is open again, and that whoever watches should begin anew.
"""

import asyncio
import collections.abc as cabc
import contextlib

from spottrain.kube import errors


class Recovery:
    """Told how requests fare, it ends what rests on connections that may be dead."""

    def __init__(self) -> None:
        self._unanswered = False
        self._watching: set[asyncio.Timeout] = set()

    def unanswered(self) -> None:
        """A request had no answer in its time; where one was refused or reset, both ends know."""
        self._unanswered = True

    def answered(self) -> None:
        """A request had an answer, whichever."""
        if self._unanswered:
            self._unanswered = False
            doubted, self._watching = self._watching, set()
            for one in doubted:
                one.reschedule(asyncio.get_running_loop().time())

    @contextlib.asynccontextmanager
    async def watching(self) -> cabc.AsyncIterator[None]:
        """What is done inside rests on connections that were opened inside.

        Raises:
            errors.UnreachableError: answers had stopped meanwhile, and come again.

        """
        try:
            async with asyncio.timeout(None) as scope:
                self._watching.add(scope)
                try:
                    yield
                finally:
                    self._watching.discard(scope)
        except TimeoutError as error:
            raise errors.UnreachableError("answers had stopped, and come again") from error
