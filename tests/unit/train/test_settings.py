from pathlib import Path

import pytest

from spottrain import errors
from spottrain.train import settings
from spottrain.train.settings import Arguments

CLUSTER = {
    "SPOTTRAIN_JOB": "tr",
    "SPOTTRAIN_NAMESPACE": "t",
    "SPOTTRAIN_JOB_UID": "u-1",
    "SPOTTRAIN_INDEX": "1",
    "SPOTTRAIN_WORKERS": "4",
    "SPOTTRAIN_ATTEMPT": "3",
    "SPOTTRAIN_ATTEMPT_ID": "0a1b",
    "SPOTTRAIN_CHECKPOINT_URI": "s3://ck/tr",
    "SPOTTRAIN_CHECKPOINT_ENDPOINT": "",
    "SPOTTRAIN_CHECKPOINT_REGION": "",
    "SPOTTRAIN_CHECKPOINT_KEEP": "5",
    "SPOTTRAIN_CHECKPOINT_INTERVAL": "auto",
    "SPOTTRAIN_RESTORE": "Latest",
    "SPOTTRAIN_RESTORE_STEP": "",
    "SPOTTRAIN_ON_BROKEN": "Stop",
    "SPOTTRAIN_GRACE_SECONDS": "90",
    "SPOTTRAIN_GO_FILE": "/etc/spottrain/annotations",
}


def read(env: dict[str, str], **arguments: object) -> settings.Settings:
    return settings.read(env, Arguments(**arguments))  # type: ignore[arg-type]


def test_what_the_operator_sets_arrives():
    told = read(CLUSTER)
    assert (told.location.uri, told.attempt, told.attempt_id, told.job_uid) == (
        "s3://ck/tr",
        3,
        "0a1b",
        "u-1",
    )
    assert (told.workers, told.keep, told.interval, told.grace) == (4, 5, None, 90.0)
    assert (told.wish, told.start_fresh_when_broken) == ("Latest", False)
    assert told.go_file == Path("/etc/spottrain/annotations")
    assert told.termination_log == Path("/dev/termination-log")


def test_in_a_cluster_the_object_counts_and_the_program_fills_gaps():
    told = read(CLUSTER, uri="file:///mine", keep=9, region="eu-west-1")
    assert (told.location.uri, told.keep, told.location.region) == ("s3://ck/tr", 5, "eu-west-1")


INDEPENDENT = {**CLUSTER, "SPOTTRAIN_MODE": "Independent", "SPOTTRAIN_CHECKPOINT_URI": "s3://ck/tr/1"}


def test_an_index_of_an_independent_job_is_alone_in_the_place_that_the_object_gives_it():
    told = read(INDEPENDENT, uri="s3://mine/ck")
    assert (told.workers, told.location.uri, told.location.folders) == (1, "s3://ck/tr/1", 2)


@pytest.mark.parametrize("uri", ["s3://mine/ck", "s3://mine/ck/"])
def test_an_index_keeps_its_checkpoints_below_the_programs_uri_where_the_object_gives_none(uri: str):
    env = {name: one for name, one in INDEPENDENT.items() if name != "SPOTTRAIN_CHECKPOINT_URI"}
    assert read(env, uri=uri).location.uri == "s3://mine/ck/1"


def test_on_a_laptop_the_program_counts():
    told = read({"SPOTTRAIN_CHECKPOINT_URI": "file:///env"}, uri="file:///mine", interval=30, restore=70)
    assert (told.location.uri, told.interval, told.wish) == ("file:///mine", 30.0, "Step:70")
    assert (told.workers, told.keep, told.termination_log, told.go_file) == (1, 3, None, None)


def test_on_a_laptop_the_variable_will_do():
    assert read({"SPOTTRAIN_CHECKPOINT_URI": "file:///env"}).location.uri == "file:///env"


@pytest.mark.parametrize(
    ("env", "arguments", "why"),
    [
        ({}, {}, "Set SPOTTRAIN_CHECKPOINT_URI, or call"),
        ({"SPOTTRAIN_CHECKPOINT_KEEP": "0"}, {}, "SPOTTRAIN_CHECKPOINT_KEEP must be at least 1, not 0"),
        ({"SPOTTRAIN_CHECKPOINT_KEEP": "three"}, {}, "must be a number, not 'three'"),
        ({"SPOTTRAIN_CHECKPOINT_INTERVAL": "5m"}, {}, "must be auto or seconds, not '5m'"),
        ({}, {"interval": -1}, "must not be negative: -1"),
        ({"SPOTTRAIN_CHECKPOINT_INTERVAL": "nan"}, {}, "must not be negative: nan"),
        ({"SPOTTRAIN_RESTORE": "Step"}, {}, "restore must be Latest, Fresh or Step:<number>"),
        ({}, {"restore": "newest"}, "not 'newest'"),
        ({}, {"on_broken": "Ignore"}, "on_broken must be Stop or StartFresh"),
        ({}, {"on_resize": "Ignore"}, "on_resize must be Stop or Continue"),
        ({"SPOTTRAIN_ATTEMPT_ID": "a-b"}, {}, "must be letters and digits, not 'a-b'"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_to_set(
    env: dict[str, str], arguments: dict[str, str], why: str
):
    uri = {} if why.startswith("Set") else {"SPOTTRAIN_CHECKPOINT_URI": "file:///x"}
    with pytest.raises(errors.ConfigError, match=why):
        read({**uri, **env}, **arguments)


def test_a_pinned_step_comes_from_two_variables():
    assert read({**CLUSTER, "SPOTTRAIN_RESTORE": "Step", "SPOTTRAIN_RESTORE_STEP": "70"}).wish == "Step:70"


def test_torchrun_kills_after_thirty_seconds_unless_told_otherwise():
    under = {**CLUSTER, "TORCHELASTIC_RUN_ID": "x"}
    assert read(under).grace == 30.0
    assert read({**under, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "60"}).grace == 60.0
    assert read({**under, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "600"}).grace == 90.0
    assert read({**under, "PET_SHUTDOWN_TIMEOUT": "45"}).grace == 45.0


def test_one_process_of_a_pod_leaves_the_last_word():
    assert read({**CLUSTER, "LOCAL_RANK": "1"}).termination_log is None
    assert read({**CLUSTER, "LOCAL_RANK": "0"}).termination_log is not None


def test_a_torchrun_restart_on_a_laptop_does_not_start_afresh_again():
    env = {"SPOTTRAIN_CHECKPOINT_URI": "file:///x"}
    assert read(env, restore="Fresh").wish == "Fresh"
    assert read({**env, "TORCHELASTIC_RESTART_COUNT": "1"}, restore="Fresh").wish == "Latest"
    assert read({**CLUSTER, "SPOTTRAIN_RESTORE": "Fresh", "TORCHELASTIC_RESTART_COUNT": "1"}).wish == "Fresh"


def test_all_indexes_of_a_job_share_the_place_that_the_object_names():
    told = settings.read(INDEPENDENT, Arguments(uri="s3://mine/ck"), of_job=True)
    assert (told.location.uri, told.location.folders) == ("s3://ck/tr", 1)
    env = {name: one for name, one in INDEPENDENT.items() if name != "SPOTTRAIN_CHECKPOINT_URI"}
    assert settings.read(env, Arguments(uri="s3://mine/ck/"), of_job=True).location.uri == "s3://mine/ck"
    assert settings.read(CLUSTER, Arguments(), of_job=True).location.uri == "s3://ck/tr"
    with pytest.raises(errors.ConfigError, match="where should results go"):
        settings.read({}, Arguments(), of_job=True)


@pytest.mark.parametrize(
    ("env", "wanted"),
    [
        ({}, (0, 1)),
        ({"SPOTTRAIN_INDEX": "1", "SPOTTRAIN_WORKERS": "4"}, (1, 4)),
        ({**CLUSTER, "RANK": "5", "WORLD_SIZE": "8"}, (5, 8)),
        ({**INDEPENDENT, "RANK": "1", "WORLD_SIZE": "2"}, (3, 8)),
        ({**INDEPENDENT}, (1, 4)),
    ],
)
def test_each_process_of_a_job_has_a_seat_of_its_own(env: dict[str, str], wanted: tuple[int, int]):
    found = settings.seat(env)
    assert (found.index, found.of) == wanted
