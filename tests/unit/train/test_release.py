from pathlib import Path

import pytest

from spottrain import errors
from spottrain.train import release
from tests.unit.train.virtual import VirtualClock

FILE = 'kubernetes.io/config.seen="2026"\nspottrain.dev/go="0a1b"\nnote="spottrain.dev/go=\\"ffff\\"\\nx"\n'


def test_the_line_with_our_attempt_releases_it():
    assert release.released(FILE, "0a1b")


@pytest.mark.parametrize(
    "text", ["", 'spottrain.dev/go=""', 'spottrain.dev/go="ffff"', 'x/spottrain.dev/go="0a1b"']
)
def test_nothing_else_does(text: str):
    assert not release.released(text, "0a1b")
    assert not release.released(FILE, "ffff")


class Appearing(VirtualClock):
    """The kubelet fills the file while we wait."""

    def __init__(self, file: Path, after: float) -> None:
        super().__init__()
        self.file, self.at = file, self.now + after

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if self.now >= self.at:
            self.file.write_text(FILE)


def test_waiting_ends_when_the_file_says_so(tmp_path: Path):
    clock = Appearing(tmp_path / "annotations", after=100)
    release.wait(tmp_path / "annotations", "0a1b", clock, lambda: False)
    assert clock.now == pytest.approx(1100, abs=1)


def test_waiting_ends_at_a_stop(tmp_path: Path):
    clock = VirtualClock()
    release.wait(tmp_path / "annotations", "0a1b", clock, lambda: clock.now > 1005)
    assert clock.now == pytest.approx(1005, abs=1)


def test_waiting_does_not_go_on_for_ever(tmp_path: Path):
    clock = VirtualClock()
    with pytest.raises(errors.NotReleased, match="is the operator running"):
        release.wait(tmp_path / "annotations", "0a1b", clock, lambda: False)
    assert clock.now == pytest.approx(1900, abs=1)
