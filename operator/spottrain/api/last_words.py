"""The end of the last failed worker's log, as it stands in the message of the condition Failed."""

from dataclasses import dataclass

_BEGIN = "\nend of the log of "


@dataclass(frozen=True)
class LastWords:
    """Of which pod, and what: some lines."""

    pod: str
    text: str

    @property
    def attempt(self) -> int:
        """The pod's, by its name (names.pod_name); 0 if it has another form."""
        number = self.pod.rpartition("-")[2]
        return int(number) if number.isdecimal() else 0

    def __str__(self) -> str:
        return f"{_BEGIN}{self.pod}:\n{self.text}"


def parted(message: str) -> tuple[str, LastWords | None]:
    """What is said itself, and the last words that were added to it, if any."""
    said, begin, rest = message.partition(_BEGIN)
    pod, _, text = rest.partition(":\n")
    return said, LastWords(pod, text) if begin else None
