"""What commands for different labs read of one another while they run side by side."""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from lab import state
from lab.config import Config


@pytest.fixture
def busy() -> Iterator[state.State]:
    """A lab that is not there otherwise."""
    one = state.State("busy-state")
    shutil.rmtree(one.folder, ignore_errors=True)
    yield one
    shutil.rmtree(one.folder, ignore_errors=True)


def test_another_labs_slot_and_configuration_are_read_whole_or_not_at_all(busy: state.State) -> None:
    """Seen: a slot read in the moment between its file's emptying and its writing ended a lab's start."""

    def comes_and_goes() -> None:
        for _ in range(300):
            busy.take_slot()
            busy.take_slot()
            busy.save(Config())
            busy.forget()
            shutil.rmtree(busy.folder)

    with ThreadPoolExecutor(max_workers=1) as side:
        going = side.submit(comes_and_goes)
        while not going.done():
            state.others_started("no-such-lab")
        going.result()
