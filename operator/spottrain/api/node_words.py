"""What the notice agent says of its Node: reasons of the condition `SpottrainNotices`, and of Events on it.

The text below each word is what docs/reference.md says of it.
"""

from typing import Final

ARMED: Final = "Armed"
"""Each source of notices has answered: a notice would be heard."""
BLIND: Final = "Blind"
"""A source has failed for 30 s; the message says which, and how."""
STARTING: Final = "Starting"
"""A source has not answered yet."""
NO_NOTICES: Final = "NoNotices"
"""This cloud gives no notice that the agent knows of."""

RECLAIM_NOTICE: Final = "ReclaimNotice"
"""The cloud takes the machine; the message has cause and deadline."""
RECLAIM_DRILL: Final = "ReclaimDrill"
"""The same, of a drill."""
RECLAIM_HINT: Final = "ReclaimHint"
"""The cloud may take the machine soon, or let it pause."""
NOTICES_UNHEARD: Final = "NoticesUnheard"
"""The agent has become blind."""

CONDITION: Final = {"True": (ARMED,), "False": (BLIND, NO_NOTICES), "Unknown": (STARTING,)}
"""Status of the condition → the reasons for it."""
EVENTS: Final = (RECLAIM_NOTICE, RECLAIM_DRILL, RECLAIM_HINT, NOTICES_UNHEARD)
"""All of them warnings."""
