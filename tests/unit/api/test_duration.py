"""Durations and times as text."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spottrain.api import duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("2m", 120), ("1h30m", 5400), ("2d", 172800), ("500ms", 0.5), ("1.5h", 5400)],
)
def test_text_to_seconds(text: str, seconds: float) -> None:
    assert duration.parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "90", "1 h", "-5s", "s", "1h 30m", "5w", "1e3s"])
def test_what_is_no_duration_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match="write it like 90s, 15m, 1h30m or 2d"):
        duration.parse_seconds(text)


@given(st.integers(0, 10_000_000))
def test_whole_seconds_survive_being_written(seconds: int) -> None:
    assert duration.parse_seconds(duration.format_seconds(seconds)) == seconds


@given(st.datetimes(min_value=dt.datetime(1970, 1, 2), timezones=st.timezones()))  # noqa: DTZ001
def test_times_survive_being_written_to_the_second(moment: object) -> None:
    text = duration.format_time(moment)  # type: ignore[arg-type]
    assert duration.format_time(duration.parse_time(text)) == text
