"""An early checkpoint: asked for in the file of annotations, and due until a save begins."""

from pathlib import Path

import pytest

from spottrain.api import names
from spottrain.train import early
from spottrain.train.log import Log
from tests.unit.train.virtual import VirtualClock


class Story:
    def __init__(self, folder: Path) -> None:
        self.file = folder / "annotations"
        self.clock = VirtualClock()
        self.wish = early.Wish(self.file, self.clock, Log(self.clock))

    def say(self, moment: str) -> None:
        self.file.write_text(f'spottrain.dev/go="0a"\nspottrain.dev/save="{moment}"\n')

    def due_later(self) -> bool:
        self.clock.sleep(early.LOOK_SECONDS)
        return self.wish.due(7)


@pytest.fixture
def story(tmp_path: Path) -> Story:
    one = Story(tmp_path)
    one.wish.begin()
    return one


def test_operator_and_library_mean_the_same_annotation():
    assert names.ANNOTATION_SAVE == early.KEY


def test_nothing_is_due_while_nobody_asks(story: Story):
    assert not story.due_later()
    story.file.write_text('spottrain.dev/go="0a"\n')
    assert not story.due_later()


def test_what_is_asked_for_is_due_until_a_save_begins_and_once_for_each_hint(story: Story):
    story.say("12:00")
    assert story.due_later()
    assert story.wish.due(7)
    story.wish.heed()
    assert not story.due_later()

    story.say("12:10")
    assert story.due_later()


def test_what_was_asked_for_before_training_began_needs_no_save(tmp_path: Path):
    story = Story(tmp_path)
    story.say("12:00")
    story.wish.begin()

    assert not story.due_later()


def test_the_file_is_read_once_a_second_at_most(story: Story):
    assert not story.due_later()
    story.say("12:00")
    assert not story.wish.due(7)
    assert story.due_later()


def test_an_annotation_that_is_gone_again_asks_for_nothing_new(story: Story):
    story.say("12:00")
    assert story.due_later()
    story.wish.heed()
    story.file.write_text("")
    assert not story.due_later()
    story.say("12:00")
    assert not story.due_later()


def test_outside_a_cluster_nobody_asks():
    clock = VirtualClock()
    wish = early.Wish(None, clock, Log(clock))
    wish.begin()

    assert not wish.due(7)
