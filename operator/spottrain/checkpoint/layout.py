"""Names of things below a checkpoint URI.

    lineage/000003.json                           the third claim on this URI
    steps/0000002000-<attemptID>-<nonce>/…        one save; the directory is never written twice
    steps/0000002000-<attemptID>-<nonce>/COMMIT.json   makes it exist

Steps and claims are compared as numbers: the zeros are for people and may be outgrown.
docs/checkpoint-format.md is the specification.
"""

import re
from dataclasses import dataclass

from spottrain import errors

FORMAT = 1
"""The version of what is written, in each claim and each COMMIT. A reader refuses what is newer."""

LINEAGE = "lineage/"
STEPS = "steps/"
COMMIT = "COMMIT.json"

_RECORD = re.compile(r"lineage/(\d{6,})\.json")
_DIRECTORY = re.compile(r"(\d{10,})-([0-9A-Za-z]+)-([0-9a-f]+)")
_ATTEMPT_ID = re.compile(r"[0-9A-Za-z]{1,64}")


@dataclass(frozen=True, order=True)
class StepDir:
    """One save: the step after which it was taken, the attempt that took it, and the nonce of this save."""

    step: int
    attempt_id: str
    nonce: str

    @property
    def name(self) -> str:
        """The directory's name below `steps/`."""
        return f"{self.step:010d}-{self.attempt_id}-{self.nonce}"

    def key(self, file: str) -> str:
        """The key of a file in it."""
        return f"{STEPS}{self.name}/{file}"

    @property
    def commit_key(self) -> str:
        """The key of its COMMIT."""
        return self.key(COMMIT)


def parse_step_dir(name: str) -> StepDir | None:
    """The save that a directory below `steps/` holds; None when the name is not one of ours."""
    found = _DIRECTORY.fullmatch(name)
    if found is None:
        return None
    return StepDir(int(found[1]), found[2], found[3])


def record_key(seq: int) -> str:
    """The key of claim number `seq`."""
    return f"{LINEAGE}{seq:06d}.json"


def parse_record_key(key: str) -> int | None:
    """The number of the claim at `key`; None when it is not a claim."""
    found = _RECORD.fullmatch(key)
    return int(found[1]) if found else None


def valid_attempt_id(text: str) -> bool:
    """Whether `text` can be part of a directory's name."""
    return _ATTEMPT_ID.fullmatch(text) is not None


def rank_folder(rank: int) -> str:
    """Where a rank's files lie within a save: rank 0's at its top, the others' in a folder of their own."""
    return "" if rank == 0 else f"rank-{rank:05d}/"


def rank_of(file: str) -> int:
    """The rank whose file this is, by its name within the save."""
    found = re.match(r"rank-(\d{5,})/", file)
    return int(found[1]) if found else 0


def refuse_newer(found: object, what: str) -> None:
    """Raise NewerFormat when `found`, the format of `what`, is one that only later versions know.

    Damage is passed over; this must not be: an older checkpoint would be taken, and the newer work lost.
    """
    if isinstance(found, int) and found > FORMAT:
        raise errors.NewerFormat(
            f"{what} has format {found}, and this version of spottrain reads up to {FORMAT}: use the version "
            "that wrote it or a later one, or another checkpoint.uri"
        )
