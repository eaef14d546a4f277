"""Moments as clouds write them."""

import datetime as dt
import email.utils
from typing import Any

from spottrain.agent import wire
from spottrain.api import duration


def rfc3339(text: Any, later: dt.timedelta = dt.timedelta()) -> dt.datetime:
    """`2017-09-18T08:22:00Z`, or so much later.

    Raises:
        wire.AnswerError: it is none.

    """
    try:
        return duration.parse_time(text) + later
    except (TypeError, ValueError, OverflowError) as error:
        raise wire.AnswerError("unreadable", f"no time: {text!r}") from error


def rfc1123(text: Any) -> dt.datetime:
    """`Mon, 19 Sep 2016 18:29:47 GMT`; raises as `rfc3339` does."""
    try:
        return email.utils.parsedate_to_datetime(str(text)).astimezone(dt.UTC)
    except (TypeError, ValueError, OverflowError) as error:
        raise wire.AnswerError("unreadable", f"no time: {text!r}") from error
