from spottrain.checkpoint import layout
from spottrain.checkpoint.layout import StepDir


def test_a_saves_name_and_its_parts_are_the_same_thing():
    directory = StepDir(2000, "a1b2c3", "00ff")
    assert directory.name == "0000002000-a1b2c3-00ff"
    assert layout.parse_step_dir(directory.name) == directory
    assert directory.commit_key == "steps/0000002000-a1b2c3-00ff/COMMIT.json"


def test_steps_are_compared_as_numbers_also_past_ten_digits():
    assert StepDir(10**10, "a", "0") > StepDir(9_999_999_999, "a", "0")
    assert layout.parse_step_dir(StepDir(10**10, "a", "0").name) == StepDir(10**10, "a", "0")


def test_names_that_are_not_ours_are_none():
    for name in ("", "latest", "2000-a-0", "0000002000-a", "0000002000-a_b-0", "0000002000-a-XY", "step-100"):
        assert layout.parse_step_dir(name) is None


def test_claims_are_numbers_also_past_six_digits():
    assert layout.record_key(3) == "lineage/000003.json"
    assert layout.parse_record_key("lineage/000003.json") == 3
    assert layout.parse_record_key(layout.record_key(1_234_567)) == 1_234_567
    for key in ("lineage/3.json", "lineage/000003.json.tmp", "steps/000003.json", "lineage/README"):
        assert layout.parse_record_key(key) is None


def test_each_ranks_files_have_a_place_of_their_own():
    assert [layout.rank_folder(rank) for rank in (0, 1, 12)] == ["", "rank-00001/", "rank-00012/"]
    assert [layout.rank_of(f"{layout.rank_folder(rank)}x.pt") for rank in (0, 1, 12)] == [0, 1, 12]


def test_attempt_ids_that_would_blur_a_name_are_refused():
    assert layout.valid_attempt_id("0f9A")
    for text in ("", "a-b", "a/b", "a.b", "ä", "x" * 65):
        assert not layout.valid_attempt_id(text)
