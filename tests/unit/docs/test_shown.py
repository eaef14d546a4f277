"""What pages show of the plugin's output is what it prints of the objects that it was taken from."""

import pytest

from spottrain.cli import events, listing, story
from tests.docs import shell
from tests.unit.cli import real

ELSEWHERE = {
    "kubectl get stj llama -o jsonpath": "an example with numbers that are easy to follow",
    "kubectl spottrain logs": "tests/unit/cli/test_logs.py: kwok's pods have no logs",
    "spottrain ": "tests/docs/test_offline.py runs it",
}


def listed() -> list[str]:
    """`digits`, which has another one below it on the page."""
    return [line.text for line in listing.lines([real.told()], real.NOW)]


def described() -> list[str]:
    return [line.text for line in story.lines(real.told(), {}, [], real.NOW)]


def told() -> list[str]:
    return [events.line(one).text for one in story.in_order(real.plane()[2])]


SHOWN = {
    "kubectl spottrain list -n spottrain-demo": listed,
    "kubectl spottrain describe digits -n spottrain-demo": described,
    "kubectl spottrain events tr --watch": told,
}
WITH_OUTPUT = [command for command in shell.every() if command.output]


@pytest.mark.parametrize("command", WITH_OUTPUT, ids=str)
def test_what_is_shown_is_what_is_printed(command: shell.Command):
    if command.line.startswith(tuple(ELSEWHERE)):
        return
    assert command.line in SHOWN, f"{command}: in {__file__}, say what prints this, or where it is tried"
    shown = [line.split() for line in command.output.splitlines()]
    printed = [line.split() for line in SHOWN[command.line]()]
    assert [line for line in shown if line in printed] == printed
