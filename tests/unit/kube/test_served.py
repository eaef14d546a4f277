"""Whether the served resource has every field, as the operator finds out."""

import copy
import dataclasses
from typing import Any

import pytest
import yaml
from aiohttp import web

from manifests import render
from spottrain.api import fields
from spottrain.kube import served
from tests.unit.kube import local

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
        ours = {"dev.spottrain.v1alpha1.SpotTrainingJob": self.served} if self.served else {}
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
                assert one.fault == older
            api.served = schema(*many)
            await one.read()
            assert one.fault.endswith(f"drops {', '.join(many[:5])} and 1 more: {REMEDY}")
            api.served = None
            await one.read()
            assert one.fault == f"{NAME} is missing: {REMEDY}"
            api.served = schema()
            await one.read()
            assert one.fault == ""

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
