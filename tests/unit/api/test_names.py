"""Names of pods."""

import re

from hypothesis import given
from hypothesis import strategies as st

from spottrain.api import names

JOB = st.from_regex(r"[a-z]([-a-z0-9]{0,50}[a-z0-9])?", fullmatch=True)


def test_a_short_name_is_job_index_attempt() -> None:
    assert names.pod_name("tr", 3, 12) == "tr-3-12"


@given(JOB, st.integers(0, 99_999), st.integers(1, 99_999))
def test_every_name_is_a_dns_label(job: str, index: int, attempt: int) -> None:
    name = names.pod_name(job, index, attempt)
    assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name)
    assert len(name) <= 63


@given(st.sets(st.tuples(st.integers(0, 99_999), st.integers(1, 99_999)), min_size=2, max_size=2))
def test_long_names_stay_apart(places: set[tuple[int, int]]) -> None:
    one, other = (names.pod_name("a" * 52, *place) for place in places)
    assert one != other
