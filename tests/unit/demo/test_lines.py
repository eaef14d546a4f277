"""Log lines of workers, as kubectl hands them on, also the cut ones."""

import pytest

from demo import lines

STAMP = "2026-11-29T15:33:52.071391659Z"
STAMPED = 1795966432.071391659


def test_a_step_line_gives_its_number_and_its_own_time() -> None:
    line = lines.parse(f"{STAMP} step=109 loss=0.5753 time=1795966432.010 rank=1\n")
    assert line is not None
    assert (line.event, line.integer("step"), line.time) == ("step", 109, 1795966432.010)


def test_a_line_of_the_library_is_known_by_its_event() -> None:
    line = lines.parse(
        "spottrain: saved step 148 in 0.04 s event=saved step=148 seconds=0.043 time=1795966437.025"
    )
    assert line is not None
    assert (line.event, line.integer("step"), line.time) == ("saved", 148, 1795966437.025)


def test_the_final_loss_is_kept_as_it_was_written_and_takes_kubectls_time() -> None:
    line = lines.parse(f"{STAMP} final_loss=0.14454732835292816")
    assert line is not None
    assert (line.event, line.fields["final_loss"]) == ("final", "0.14454732835292816")
    assert line.time == pytest.approx(STAMPED, abs=1e-5)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        STAMP,
        f"{STAMP} ",
        f"{STAMP} [W1129 socket.cpp:764] the IPv6 network addresses cannot be retrieved",
        f"{STAMP} step=12",
        f"{STAMP} step=12 los",
        "step=12 loss=0.5",
        "a sentence with x=1 in it time=1795966437.025",
    ],
    ids=["empty", "newline", "stamp", "stamp-space", "prose", "no-loss", "cut", "no-time", "no-event"],
)
def test_what_is_for_people_or_was_cut_says_nothing(text: str) -> None:
    assert lines.parse(text) is None


def test_a_line_cut_inside_its_time_takes_kubectls_time() -> None:
    line = lines.parse(f"{STAMP} step=12 loss=0.5 time=")
    assert line is not None
    assert line.time == pytest.approx(STAMPED, abs=1e-5)


def test_a_field_that_is_no_whole_number_is_none() -> None:
    line = lines.parse("event=saved step=- time=1795966437.0")
    assert line is not None
    assert (line.integer("step"), line.integer("absent")) == (None, None)


def test_stamps_sort_by_time_whatever_number_of_decimals_they_have() -> None:
    texts = ["2026-11-29T15:33:52Z a", "2026-11-29T15:33:52.07Z b", "2026-11-29T15:33:52.071391659Z c"]
    stamps = [lines.stamp_of(text) for text in texts]
    assert stamps == sorted(stamps)
    assert len(set(stamps)) == len(stamps)


def test_a_line_without_a_stamp_sorts_before_all() -> None:
    assert lines.stamp_of("error: container is not ready") == ""
