"""`spec.activeDeadline`: how long a job may be active, all its attempts together.

As with a Job's `activeDeadlineSeconds`: the time begins with the first attempt, runs on through reclaims,
waits and edits, and begins anew when a suspended job is resumed.
"""

import datetime as dt

from spottrain.api import conditions, duration, spec
from spottrain.plan import draft as drafts
from spottrain.plan import ending


def begin(draft: drafts.Draft) -> None:
    """The job is active from now on."""
    draft.update(active_since=draft.snapshot.now)


def fail_when_active_for_too_long(draft: drafts.Draft) -> bool:
    """Its time is over. A status of before there was this field is taken to be active since its start."""
    wishes = draft.snapshot.spec
    since = draft.status.active_since or draft.status.start
    if isinstance(wishes, spec.InvalidSpecError) or wishes.active_deadline is None or since is None:
        return False
    deadline = since + dt.timedelta(seconds=wishes.active_deadline)
    if draft.snapshot.now < deadline:
        draft.wake_at(deadline)
        return False
    limit = duration.format_seconds(wishes.active_deadline)
    step = "" if draft.status.step is None else f"; the last step that is known is {draft.status.step}"
    message = f"active since {duration.format_time(since)}, and spec.activeDeadline is {limit}{step}"
    ending.fail(draft, conditions.DEADLINE_EXCEEDED, message)
    return True
