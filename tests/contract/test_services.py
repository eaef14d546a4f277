"""What goes wrong between a program and an object store, on each of them."""

import threading
from pathlib import Path

import pytest

from spottrain import errors
from spottrain.checkpoint.store import Limits, create_once
from tests.contract import faults, gateway, services

COMMIT = "steps/1/COMMIT.json"


def test_a_missing_bucket_is_an_error_not_an_empty_store(service: services.Service):
    store = service.open("no-such-place")
    for read in (lambda: store.list(""), lambda: store.list("steps/"), lambda: store.get("a")):
        with pytest.raises(errors.StoreMissing, match=f"create the {service.word} no-such-place"):
            read()


def test_a_missing_bucket_takes_no_commit(service: services.Service):
    with pytest.raises(errors.StoreMissing, match=f"create the {service.word} no-such-place"):
        service.open("no-such-place").put_if_absent(COMMIT, b"mine")


def test_a_missing_bucket_takes_no_file(service: services.Service, tmp_path: Path):
    (tmp_path / "sent").write_bytes(b"x")
    with pytest.raises(errors.StoreMissing, match=f"create the {service.word} no-such-place"):
        service.open("no-such-place").put_file("steps/1/state.pt", tmp_path / "sent")


def test_a_server_that_refuses_connections_is_unavailable(service: services.Service, place: str):
    store = service.open(place, endpoint=f"http://127.0.0.1:{gateway.free_port()}")
    with pytest.raises(
        errors.StoreUnavailable, match=f"{service.scheme}://{place}/run: cannot list"
    ) as caught:
        store.list("")
    assert caught.value.retryable


def test_a_server_that_says_nothing_is_unavailable(
    service: services.Service, place: str, front: faults.Proxy
):
    held = faults.Hold(threading.Event())
    front.rule = lambda _: held
    limits = Limits(connect=2, read=0.3, tries=1)
    with pytest.raises(errors.StoreUnavailable, match="cannot list"):
        service.open(place, endpoint=front.endpoint, limits=limits).list("")
    held.release.set()


def test_a_server_that_fails_once_is_asked_again(service: services.Service, place: str, front: faults.Proxy):
    failing = iter([service.refusal(503, "ServerBusy")])
    front.rule = lambda _: next(failing, None)
    assert service.open(place, endpoint=front.endpoint).list("") == []
    assert next(failing, None) is None


def test_a_commit_whose_answer_is_lost_is_found_to_be_ours(
    service: services.Service, place: str, front: faults.Proxy
):
    """The PUT worked, its answer never came: the retry meets a refusal that is our own success."""
    lost = iter([faults.LoseAnswer()])
    front.rule = lambda request: next(lost, None) if request.is_write else None
    store = service.open(place, endpoint=front.endpoint, limits=Limits(connect=2, read=5, tries=3))
    assert create_once(store, COMMIT, b"mine") is None
    assert next(lost, None) is None
    assert service.open(place).get(COMMIT) == b"mine"


def test_a_commit_that_is_never_answered_is_read_back(
    service: services.Service, place: str, front: faults.Proxy
):
    """All retries are used up: what the store holds decides."""
    front.rule = lambda request: faults.LoseAnswer() if request.is_write else None
    store = service.open(place, endpoint=front.endpoint)
    assert create_once(store, COMMIT, b"mine") is None
    assert create_once(store, COMMIT, b"other") == b"mine"


def test_a_commit_that_never_arrived_is_unavailable(
    service: services.Service, place: str, front: faults.Proxy
):
    refusal = service.refusal(503, "ServerBusy")
    front.rule = lambda request: refusal if request.is_write else None
    with pytest.raises(errors.StoreUnavailable, match="cannot write steps/1/COMMIT"):
        create_once(service.open(place, endpoint=front.endpoint), COMMIT, b"mine")
    assert service.open(place).get(COMMIT) is None


def test_a_listing_that_fails_half_way_is_an_error(
    bucket: str, s3_server: gateway.Gateway, proxy: faults.Proxy
):
    """The first thousand keys came, the rest did not: that is not a thousand keys."""
    folder = s3_server.folder / bucket / "run"
    folder.mkdir()
    for number in range(1001):
        (folder / f"{number:04d}").touch()
    store = services.Amazon(s3_server).open(bucket, endpoint=proxy.endpoint)
    assert len(store.list("")) == 1001
    more = "continuation-token="
    proxy.rule = lambda request: faults.Answer(500, "InternalError") if more in request.target else None
    with pytest.raises(errors.StoreUnavailable, match="cannot list"):
        store.list("")
