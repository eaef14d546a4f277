"""Whether the served resource has every field, as the operator finds out."""

import asyncio
import copy
import dataclasses
from typing import Any

import pytest
import yaml
from aiohttp import web

from manifests import render
from spottrain.api import fields
from spottrain.kube import served
from tests.unit import virtual_time
from tests.unit.kube import local

OURS = "dev.spottrain.v1alpha1.SpotTrainingJob"
NAME = "the resource spottrainingjobs.spottrain.dev"
REMEDY = "apply crds/ of this version (docs/install.md#upgrading)"


def schema(*without: str) -> dict[str, Any]:
    """The resource's schema, less these fields of its spec."""
    (version,) = yaml.safe_load(render.CRD.read_text())["spec"]["versions"]
    root: dict[str, Any] = copy.deepcopy(version["schema"]["openAPIV3Schema"])
    for path in without:
        *parents, name = path.split(".")
        node = root
        for one in parents:
            node = node["properties"][one]
        del node["properties"][name]
    return root


@dataclasses.dataclass
class OpenApi:
    """Publishes this schema; or none of ours; or refuses."""

    served: dict[str, Any] | None = None
    code: int = 200

    async def answer(self, request: web.Request) -> web.StreamResponse:
        assert request.path == "/openapi/v3/apis/spottrain.dev/v1alpha1"
        if self.code != 200:
            return local.refused(self.code)
        ours = {OURS: self.served} if self.served else {}
        return web.json_response({"components": {"schemas": ours}})


def test_the_list_of_fields_ends_where_a_pod_begins() -> None:
    assert fields.known() == fields.paths(schema())
    assert "spec.template.spec" in fields.known()
    assert "status.attempts[].cause" in fields.known()
    assert not any(path.startswith("spec.template.spec.") for path in fields.known())


def test_of_a_field_that_is_missing_whole_nothing_below_is_named() -> None:
    assert fields.lacking(schema("spec.spot", "status.attempts")) == ["spec.spot", "status.attempts"]


def test_d4_what_an_older_resource_lacks_is_said_once_in_the_log_and_until_it_is_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    older = f"{NAME} is older than this operator and drops spec.spot.window: {REMEDY}"
    many = [f"spec.{one}" for one in ("maxFailures", "mode", "prices", "spot", "suspend", "workers")]

    async def body() -> None:
        api = OpenApi(schema("spec.spot.window"))
        async with local.server(api.answer) as client:
            one = served.Served(client)
            assert one.fault == f"{NAME}: its fields were not read yet"
            for _ in range(2):
                await one.read()
                assert (one.fault, one.lacking) == (older, frozenset({"spec.spot.window"}))
            api.served = schema(*many)
            await one.read()
            assert one.fault.endswith(f"drops {', '.join(many[:5])} and 1 more: {REMEDY}")
            api.served = None
            await one.read()
            assert one.fault == f"{NAME} is missing: {REMEDY}"
            api.served = schema()
            await one.read()
            assert (one.fault, one.lacking) == ("", frozenset())

    local.run(body())
    assert [record.getMessage() for record in caplog.records].count(older) == 1


@pytest.mark.parametrize(("code", "fault"), [(404, f"{NAME} is missing: {REMEDY}"), (403, "")])
def test_a_resource_that_is_not_there_is_a_fault_and_one_that_may_not_be_read_is_none(
    code: int, fault: str
) -> None:
    async def body() -> None:
        async with local.server(OpenApi(code=code).answer) as client:
            one = served.Served(client)
            await one.read()
            assert one.fault == fault

    local.run(body())


def test_what_cannot_be_read_at_the_start_is_a_fault_and_later_changes_nothing() -> None:
    async def body() -> None:
        api = OpenApi(schema(), code=500)
        async with local.server(api.answer) as client:
            one = served.Served(client)
            for code, fault in (
                (500, f"the fields of {NAME} can't be read: 500 Unknown: no"),
                (200, ""),
                (500, ""),
            ):
                api.code = code
                await one.read()
                assert one.fault == fault

    local.run(body())


@pytest.mark.parametrize(
    "text",
    [
        "<html>sign in</html>",
        "[]",
        "null",
        "",
        "{}",
        '{"components": null}',
        '{"components": {"schemas": []}}',
        f'{{"components": {{"schemas": {{"{OURS}": "x"}}}}}}',
    ],
)
def test_an_answer_that_is_no_schema_cannot_be_read_and_changes_nothing_where_all_was_well(text: str) -> None:
    """A proxy's page, most likely: the operator neither ends nor says that the resource is wrong."""
    schemas = [schema()]

    async def answer(_: web.Request) -> web.StreamResponse:
        if schemas:
            return web.json_response({"components": {"schemas": {OURS: schemas.pop()}}})
        return web.Response(text=text, content_type="application/json")

    async def body() -> None:
        async with local.server(answer) as client:
            one, new = served.Served(client), served.Served(client)
            await one.read()
            await one.read()
            assert one.fault == ""
            await new.read()
            assert new.fault.startswith(
                f"the fields of {NAME} can't be read: GET /openapi/v3/apis/spottrain.dev"
            )
            assert new.fault.endswith("see whether a proxy answers in the API server's place")

    local.run(body())


def test_a_schema_of_no_known_shape_has_none_of_the_fields() -> None:
    odd = {"properties": {"spec": {"properties": {"workers": None, "spot": {"properties": []}}}, "status": 1}}
    assert fields.paths(odd) == {"spec", "spec.workers", "spec.spot", "status"}


def test_where_all_was_well_a_missing_resource_is_believed_when_it_is_missing_still_after_2_s() -> None:
    """A server that has just been restarted may publish the resource a moment later than it answers."""
    api = OpenApi(schema())

    async def body() -> None:
        async with local.server(api.answer) as client:
            one = served.Served(client)
            reading = asyncio.create_task(one.run())
            await asyncio.sleep(1)
            for code in (404, 200):
                api.code, api.served = code, None
                await asyncio.sleep(300)
                assert one.fault == ""
                api.code, api.served = 200, schema()
                await asyncio.sleep(2)
                assert one.fault == ""
            api.code = 404
            await asyncio.sleep(302)
            assert one.fault == f"{NAME} is missing: {REMEDY}"
            reading.cancel()

    virtual_time.run(body())
