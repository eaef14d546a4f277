"""`logs`: attempt after attempt, whatever is still there."""

import copy
import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from spottrain import errors
from spottrain.cli import history, kubectl, logs, once
from tests.unit.cli import real
from tests.unit.train.virtual import VirtualClock


class Cluster:
    """Its pods' logs by name; a `lost` one's node doesn't answer."""

    def __init__(self, *lost: str) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.lost = lost

    def stream(self, *arguments: str) -> Iterator[str]:
        self.asked.append(arguments)
        if arguments[2] in self.lost:
            raise errors.ClusterError("the node does not answer")
        yield f"hello from {arguments[2]}\n"


Read = tuple[bool, list[str], list[str], Cluster]


def read(wish: logs.Wish, *versions: history.History, lost: str = "") -> Read:
    """Whether any was read, the log, the remarks; the job is as in each version in turn, and then so."""
    return read_of(Cluster(lost), wish, *versions)


def read_of(cluster: Cluster, wish: logs.Wish, *versions: history.History) -> Read:
    out: list[str] = []
    notes: list[str] = []
    states = itertools.chain(versions, itertools.repeat(versions[-1]))
    reader = logs.Reader(wish, cluster, lambda: next(states), VirtualClock(), out.append, notes.append)
    return reader.read(), out, notes, cluster


def test_all_attempts_are_printed_and_the_gone_one_is_said_with_its_end():
    done, out, notes, _ = read(logs.Wish(index=1), real.told())

    assert done
    assert out == ["hello from digits-1-2\n", "hello from digits-1-3\n"]
    assert notes == [
        (
            "attempt 1, worker 1: its pod is gone, and its log with it; "
            "Reclaimed (Evicted) on spot-2: digits-1-1: EvictionByEvictionAPI"
        ),
        "==> digits-1-2 (attempt 2, worker 1, exited 1)",
        "==> digits-1-3 (attempt 3, worker 1, exited 0)",
    ]


def test_one_attempt_alone_is_printed():
    _, out, _, _ = read(logs.Wish(attempt=2), real.told())

    assert out == ["hello from digits-0-2\n"]


def test_nothing_to_read_is_no_success():
    done, out, (remark,), _ = read(logs.Wish(attempt=1), real.told())

    assert (done, out) == (False, [])
    assert "its pod is gone" in remark


def test_an_attempt_without_pods_has_lost_no_log():
    _, _, (remark,), _ = read(logs.Wish(attempt=3), real.given_up())

    assert remark == f"attempt 3, worker 0: it had no pod; Failed: {real.SAID}"


def test_attempts_of_long_ago_are_one_remark():
    attempts = [
        {**real.digits()[0]["status"]["attempts"][2], "number": number, "id": f"{number}"}
        for number in (8, 9)
    ]

    _, _, notes, _ = read(logs.Wish(), real.told(attempts=attempts, attempt=9))

    assert notes[0] == "attempts 1 to 8: the pods are gone, and their logs with them"
    assert len(notes) == 2


def test_a_node_that_does_not_answer_is_said_and_the_others_are_read():
    done, out, notes, _ = read(logs.Wish(), real.told(), lost="digits-0-2")

    assert done
    assert out == ["hello from digits-0-3\n"]
    assert "the log of digits-0-2 can't be read: the node does not answer" in notes


def followed(number: int, **pod: Any) -> history.History:
    """The job in its third attempt, and on; worker 0's pod of it changed."""
    job = real.job(phase="Running", completionTime=None)
    pods = copy.deepcopy(real.digits()[1])
    for one in pods:
        if one["metadata"]["name"] == f"digits-0-{number}":
            one["status"] = pod
    return history.tell(job, pods)


def test_following_goes_on_into_the_next_attempt_when_its_worker_has_started():
    waiting = followed(3, phase="Pending")

    done, out, notes, cluster = read(logs.Wish(follow=True), waiting, waiting, real.told())

    assert done
    assert out == ["hello from digits-0-2\n", "hello from digits-0-3\n"]
    assert all(asked[3:] == ("--follow", "--timestamps") for asked in cluster.asked)
    assert not [note for note in notes if "has not started" in note]


class Breaking(Cluster):
    """The log of one pod, of which each read gets so much; `broken`: with an error at its end."""

    def __init__(self, *parts: str, broken: bool) -> None:
        super().__init__()
        self.parts = list(parts)
        self.broken = broken

    def stream(self, *arguments: str) -> Iterator[str]:
        self.asked.append(arguments)
        yield from self.parts.pop(0).splitlines(keepends=True)
        if self.broken and self.parts:
            raise errors.ClusterError("unexpected EOF")


def stamped(second: str, text: str) -> str:
    return f"2026-11-29T21:00:{second}Z {text}"


FIRST, SECOND = stamped("07.900000001", "one\n"), stamped("08.100000001", "two\n")
TWIN = stamped("08.100000001", "two\n")
THIRD = stamped("08.300000001", "three\n")


def running() -> history.History:
    return followed(3, containerStatuses=[{"name": "train", "state": {"running": {"startedAt": STARTED}}}])


STARTED = "2026-11-29T21:00:00Z"


@pytest.mark.parametrize("broken", [True, False])
def test_a_connection_that_breaks_is_opened_again_and_each_line_is_printed_once(broken: bool):
    """In the middle of a line, of two that are alike to the nanosecond the second one; silently or not."""
    log = Breaking(FIRST + SECOND + THIRD[:20], SECOND + TWIN + THIRD, THIRD, broken=broken)

    done, out, notes, cluster = read_of(log, logs.Wish(attempt=3, follow=True), *[running()] * 3, real.told())

    assert (done, out) == (True, ["one\n", "two\n", "two\n", "three\n"])
    assert [asked[3:] for asked in cluster.asked] == [
        ("--follow", "--timestamps"),
        ("--follow", "--timestamps", "--since-time=2026-11-29T21:00:07Z"),
        ("--follow", "--timestamps", "--since-time=2026-11-29T21:00:07Z"),
    ]
    assert notes[1:] == ["the log of digits-0-3 broke off, and is opened again: unexpected EOF"] * broken


def test_a_pod_that_is_gone_before_its_log_is_read_to_the_end_is_said():
    job, pods = real.digits()
    gone = history.tell(job, [one for one in pods if one["metadata"]["name"] != "digits-0-3"])
    log = Breaking(FIRST, "", broken=True)

    done, out, notes, _ = read_of(log, logs.Wish(attempt=3, follow=True), running(), running(), gone)

    assert (done, out) == (True, ["one\n"])
    assert notes[-1] == "digits-0-3 is gone, and what was not read of its log with it"


class Answering(Cluster):
    """The log of one pod: each read gets so many lines, or an error in their place."""

    def __init__(self, *reads: list[str | errors.ClusterError]) -> None:
        super().__init__()
        self.reads = list(reads)

    def stream(self, *arguments: str) -> Iterator[str]:
        self.asked.append(arguments)
        for one in self.reads.pop(0):
            if isinstance(one, errors.ClusterError):
                raise one
            yield one


AWAY = kubectl.failure("get", "The connection to the server 10.0.0.1:6443 was refused")
SILENT = kubectl.failure("logs", 'Get "https://10.0.0.5:10250/containerLogs/a/b/c": dial tcp: i/o timeout')
GO_ON = logs.Wish(attempt=3, follow=True)


def follow(
    cluster: Cluster, wish: logs.Wish, *states: history.History | errors.ClusterError
) -> tuple[bool, list[str], list[str]]:
    """Whether any was read, the log, the remarks; the job is so in turn, or can't be found."""
    in_turn = iter(states)
    out: list[str] = []
    notes: list[str] = []

    def find() -> history.History:
        state = next(in_turn)
        if isinstance(state, errors.ClusterError):
            raise state
        return state

    reader = logs.Reader(wish, cluster, find, VirtualClock(), out.append, notes.append)
    return reader.read(), out, notes


def test_following_outlasts_an_api_server_that_is_away_while_a_log_is_read():
    log = Answering([FIRST, AWAY], [FIRST, SECOND])

    done, out, notes = follow(log, GO_ON, running(), running(), AWAY, AWAY, real.told(), real.told())

    assert (done, out) == (True, ["one\n", "two\n"])
    assert [note.partition(":")[0] for note in notes[1:]] == [
        "the log of digits-0-3 broke off, and is opened again",
        "no answer, so asked again until there is one",
    ]


def test_following_outlasts_an_api_server_that_is_away_between_two_attempts():
    waiting = followed(3, phase="Pending")
    log = Answering([FIRST], [SECOND])

    done, out, notes = follow(
        log, logs.Wish(follow=True), waiting, waiting, AWAY, AWAY, waiting, *[real.told()] * 3
    )

    assert (done, out) == (True, ["one\n", "two\n"])
    assert len([note for note in notes if "no answer" in note]) == 1


@pytest.mark.parametrize("trouble", [AWAY, SILENT])
def test_a_running_pod_that_can_not_be_read_at_first_is_followed_later(trouble: errors.ClusterError):
    log = Answering([trouble], [trouble], [FIRST], [FIRST, SECOND])

    done, out, notes = follow(log, GO_ON, *[running()] * 4, *[real.told()] * 2)

    assert (done, out) == (True, ["one\n", "two\n"])
    assert notes[1:] == [f"the log of digits-0-3 did not come, and is opened again: {trouble}"]


def test_the_end_of_an_ended_pods_log_is_read_when_the_api_server_is_back():
    """It went in the middle of a line."""
    log = Answering([FIRST], [FIRST, SECOND[:-2], AWAY], [FIRST, SECOND, THIRD])

    done, out, _ = follow(log, GO_ON, running(), running(), *[real.told()] * 3)

    assert (done, out) == (True, ["one\n", "two\n", "three\n"])


def test_an_ended_pods_log_is_given_up_when_its_node_does_not_answer():
    done, out, notes = follow(Answering([FIRST], [SILENT]), GO_ON, running(), running(), *[real.told()] * 2)

    assert (done, out) == (True, ["one\n"])
    assert notes[-1] == f"the log of digits-0-3 can't be read to its end: {SILENT}"


def test_a_log_that_may_not_be_read_is_given_up():
    refused = kubectl.failure("logs", 'Error from server (Forbidden): pods "digits-0-3" is forbidden')

    done, out, notes = follow(Answering([refused]), GO_ON, *[running()] * 2)

    assert (done, out) == (False, [])
    assert notes[-1] == f"the log of digits-0-3 can't be read: {refused}"


def test_following_ends_with_a_job_that_is_gone():
    with pytest.raises(errors.ClusterError, match="there is no job digits"):
        follow(Answering([FIRST]), GO_ON, running(), running(), errors.ClusterError("there is no job digits"))


def test_a_cluster_that_is_away_from_the_beginning_is_an_error():
    """As somebody chose the wrong one."""
    with pytest.raises(errors.ClusterUnreachable, match="see --context"):
        follow(Answering(), GO_ON, AWAY)


def test_a_progress_bar_is_printed_once():
    """Its pod's log is read once more after the end."""
    bar = stamped("08.100000001", " 10%\r 50%\r100%\n")

    done, out, _ = follow(Answering([FIRST, bar], [bar]), GO_ON, *[running()] * 2, *[real.told()] * 2)

    assert (done, out) == (True, ["one\n", " 10%\r 50%\r100%\n"])


def test_the_rest_of_a_long_line_in_which_it_is_read_again_is_not_printed_again():
    """The kubelet gives its later pieces alone; one begins within a character."""
    lines = once.Once()
    bar = " 10%|\u2588   |\r100%|\u2588\u2588\u2588\u2588|\n"
    assert lines.line(stamped("08.1", bar)) == bar
    assert lines.line(stamped("40.1", "done\n")) == "done\n"

    assert lines.reopen()[1:] == ("--since-time=2026-11-29T21:00:39Z",)

    cut = bar.encode()[-9:].decode(errors="replace")
    assert cut[0] == "\ufffd"
    assert lines.line(cut) is None
    assert lines.line(stamped("40.1", "done\n")) is None
    assert lines.line("unable to retrieve container logs\n") == "unable to retrieve container logs\n"


def test_a_log_whose_last_line_has_no_end_is_printed_whole_and_the_kubelets_own_remark_too():
    log = Breaking(FIRST + "unable to retrieve more\n" + THIRD.rstrip("\n"), broken=False)

    _, out, _, _ = read_of(log, logs.Wish(attempt=3, follow=True), real.told())

    assert out == ["one\n", "unable to retrieve more\n", "three"]


def test_what_a_node_wrote_in_its_own_time_zone_is_read_on_from_the_same_moment():
    lines = once.Once()
    assert lines.line("2026-11-29T22:30:00.5+01:30 one\n") == "one\n"
    assert lines.reopen() == ("--timestamps", "--since-time=2026-11-29T20:59:59Z")


def test_no_more_than_what_may_come_again_is_remembered():
    lines = once.Once()
    for minute in range(10):
        assert lines.line(f"2026-11-29T21:0{minute}:00.5Z line\n") == "line\n"
    lines.reopen()
    assert lines.line("2026-11-29T21:08:00.5Z line\n") == "line\n"
    assert lines.line("2026-11-29T21:09:00.5Z line\n") is None


def test_a_worker_that_has_not_started_is_said_and_why():
    waiting = followed(
        3, containerStatuses=[{"name": "train", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]
    )

    done, _, notes, _ = read(logs.Wish(attempt=3), waiting)

    assert not done
    assert notes == ["attempt 3, worker 0: digits-0-3 has not started: waiting (ImagePullBackOff)"]


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        (logs.Wish(index=3), "there is no worker 3: digits has 0 to 2"),
        (logs.Wish(attempt=4), "there is no attempt 4: the newest is 3"),
    ],
)
def test_a_worker_or_an_attempt_that_there_is_not_is_refused(wish: logs.Wish, words: str):
    with pytest.raises(errors.ClusterError, match=words):
        read(wish, real.told())


def test_an_index_of_an_independent_job_has_attempts_of_its_own():
    job = real.job(attempts=[], indexes={"restarts": "0,1"}, completedIndexes="")
    job["spec"]["mode"] = "Independent"

    _, out, notes, _ = read(logs.Wish(index=1), history.tell(job, real.digits()[1]))

    assert out == ["hello from digits-1-2\n"]
    assert notes[0] == "attempt 1, worker 1: its pod is gone, and its log with it"
