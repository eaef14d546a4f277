"""What is asked of a cluster, what its refusals mean, and what shells are offered."""

import argparse
import os
from collections.abc import Sequence
from typing import Any

import pytest

from spottrain import errors
from spottrain.cli import completion, jobs, kubectl
from spottrain.cli import main as command
from tests.unit.cli import real

REFUSED = 'Error from server (Forbidden): pods is forbidden: User "ann" cannot list resource "pods"'
SILENT = 'Error from server: Get "https://10.0.0.5:10250/containerLogs/a/b/c": dial tcp: i/o timeout'


class Cluster:
    """One job `digits`, and names of others; kinds in `refused` may not be read."""

    def __init__(self, *others: str, refused: Sequence[str] = ()) -> None:
        self.others, self.refused = others, refused
        self.asked: list[tuple[str, ...]] = []

    def get(self, *what: str) -> dict[str, Any]:
        return self.find(*what) or {"items": []}

    def find(self, *what: str) -> dict[str, Any] | None:
        self.asked.append(what)
        if what[0] in self.refused:
            raise errors.ClusterError("no rights")
        job, pods = real.digits()
        if what[0] == jobs.RESOURCE and len(what) > 1 and not what[1].startswith("-"):
            return job if what[1] == "digits" else None
        if what[0] == "pods":
            return {"items": pods}
        if what[0] == "nodes":  # those that are still there: one, so it is no list
            return {"metadata": {"name": "od-1"}, "spec": {}}
        return {"items": [{"metadata": {"name": name}} for name in self.others]} if self.others else None


def test_a_job_is_gathered_with_its_pods_nodes_and_events():
    cluster = Cluster()

    found = jobs.gather(cluster, "digits", ("--namespace=ml",))

    assert [len(found.pods), list(found.nodes), found.missing] == [5, ["od-1"], ()]
    assert cluster.asked[-1] == ("nodes", "od-1", "spot-1", "spot-2", "spot-3")
    uid = found.job["metadata"]["uid"]
    assert cluster.asked[2] == (
        "events",
        "--namespace=spottrain-demo",
        f"--field-selector=involvedObject.uid={uid}",
    )


def test_what_may_not_be_read_is_left_out_and_said():
    found = jobs.gather(Cluster(refused=["nodes", "events"]), "digits", ())

    assert found.missing == ("events can't be read: no rights", "nodes can't be read: no rights")


@pytest.mark.parametrize(
    ("others", "scope", "words"),
    [
        (("digits", "llama"), (), "there is no job digit in the current namespace: is it digits?"),
        (("bert", "llama"), ("--namespace=ml",), "in namespace ml: is it bert or llama?"),
        ((), (), "nor any other, in the current namespace: name another one with -n, or list -A"),
    ],
)
def test_a_job_that_there_is_not_is_answered_with_names_that_are_near(
    others: tuple[str, ...], scope: tuple[str, ...], words: str
):
    with pytest.raises(errors.ClusterError) as found:
        jobs.one(Cluster(*others), "digit", scope)
    assert words in str(found.value)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            'error: the server doesn\'t have a resource type "spottrainingjobs"',
            "knows no SpotTrainingJob: install",
        ),
        (REFUSED, "ask for the role `view`"),
        ("error: You must be logged in to the server (Unauthorized)", "does not know you"),
        ("The connection to the server localhost:8080 was refused", "`kubectl cluster-info` must work first"),
        ('error: context "prod" does not exist', "see --context"),
        (SILENT, "is it gone?"),
    ],
)
def test_a_refusal_says_what_to_do_and_ends_with_kubectls_own_words(said: str, words: str):
    sentence = kubectl.sentence("get", f"E1130 memcache.go: noise\n{said}\n")

    assert words in sentence
    assert sentence.endswith(f"({said})")


AWAY = [
    "The connection to the server 10.0.0.1:6443 was refused - did you specify the right host or port?",
    "Unable to connect to the server: net/http: TLS handshake timeout",
    "Error from server: etcdserver: leader changed",
    "Error from server: etcdserver: request timed out",
    "Error from server (ServiceUnavailable): apiserver not ready",
    "Error from server (Timeout): the server was unable to return a response in the time allotted",
    "Error from server (TooManyRequests): the server has received too many requests",
    'Error from server (InternalError): an error on the server ("apiserver is shutting down") has prevented',
    'Error from server (InternalError): an error on the server ("<h1>502 Bad Gateway</h1>\n") has prevented',
    "error: http2: client connection lost",
    "error: unexpected EOF",
    'error: couldn\'t get current server API group list: Get "https://10.0.0.1:6443/api": EOF',
]
THERE = [
    'error: context "prod" does not exist',
    "Error in configuration: context was not found for specified context: prod",
    'error: no server found for cluster "prod"',
    'error: auth info "ann" does not exist',
    "error: invalid configuration: no configuration has been provided",
    "error: You must be logged in to the server (Unauthorized)",
    'Error from server (NotFound): pods "timeout" not found',
    REFUSED,
]


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        *((said, errors.ClusterUnreachable) for said in AWAY),
        *((said, errors.ClusterError) for said in THERE),
        (SILENT, errors.NodeUnreachable),
    ],
)
def test_what_passes_by_itself_is_told_from_what_somebody_must_mend(
    said: str, kind: type[errors.ClusterError]
):
    assert type(kubectl.failure("get", said)) is kind


def test_a_refusal_that_is_not_known_is_passed_on():
    assert kubectl.sentence("get", "boom\n") == "kubectl get: boom"


def test_kubectls_flags_are_passed_on():
    reader = argparse.ArgumentParser()
    kubectl.add_arguments(reader)

    given = reader.parse_args(["--context", "prod", "--as=ann", "--kubeconfig=/k"])

    assert kubectl.chosen(given).flags == ("--kubeconfig=/k", "--context=prod", "--as=ann")


def offered(*typed: str) -> list[str]:
    def ask(before: Sequence[str], kind: str) -> list[str]:
        return {"job": ["digits", "llama"], "node": ["n1"], "namespace": ["ml"], "context": ["prod"]}[kind]

    return completion.candidates(typed, command.parser(os.environ), ask)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (("de",), ["describe"]),
        (("describe", ""), ["digits", "llama"]),
        (("logs", "l"), ["llama"]),
        (("logs", "llama", "--at"), ["--attempt"]),
        (("drill", ""), ["n1"]),
        (("list", "-n", ""), ["ml"]),
        (("list", "--context", "p"), ["prod"]),
        (("list", "-o", ""), ["json", "table"]),
        (("checkpoints", "v"), ["verify"]),
        (("report", "llama", "-o", ""), []),
        (("nonsense", ""), offered("")),
    ],
)
def test_shells_are_offered_what_can_stand_there(typed: tuple[str, ...], words: list[str]):
    assert offered(*typed) == words
