"""What a stop does with an upload under way, by the time that is left."""

import pytest

from spottrain.train.last_save import Choice, choose


@pytest.mark.parametrize(
    ("left", "elapsed", "upload", "expected"),
    [
        (20.0, 0.0, 10.0, Choice.BOTH),
        (14.0, 6.0, 10.0, Choice.BOTH),
        (13.9, 6.0, 10.0, Choice.NEWEST),
        (10.0, 0.0, 10.0, Choice.NEWEST),
        (9.9, 6.0, 10.0, Choice.UNDER_WAY),
        (3.0, 6.0, 10.0, Choice.UNDER_WAY),
        (3.0, 24.0, 10.0, Choice.UNDER_WAY),
        (3.0, 26.0, 10.0, Choice.NEWEST),
        (100.0, 26.0, 10.0, Choice.NEWEST),
        (1.0, 500.0, None, Choice.BOTH),
    ],
    ids=[
        "time for one after the other",
        "just",
        "not for both",
        "for one alone",
        "the newest does not fit",
        "neither does",
        "late, and nearly there",
        "so late that it is stuck",
        "stuck, with all the time there is",
        "nothing was measured",
    ],
)
def test_newest_first_unless_only_the_one_under_way_can_be_there_in_time(
    left: float, elapsed: float, upload: float | None, expected: Choice
):
    assert choose(left=left, elapsed=elapsed, upload=upload) == expected
