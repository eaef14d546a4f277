"""The one place of the operator that looks at the wall clock."""

import datetime as dt


def now() -> dt.datetime:
    """The time, aware, in UTC."""
    return dt.datetime.now(dt.UTC)
