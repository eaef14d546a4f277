"""The ConfigMap of prices, as it is read."""

import dataclasses
from typing import Any

import pytest
from aiohttp import web

from spottrain.api import clouds
from spottrain.api import prices as price
from spottrain.kube import prices
from tests.unit.kube import local

BROKEN = 'line 2: "spot g5 *" is not CAPACITY INSTANCE-TYPE ZONE PRICE; write four words'
G5 = (clouds.Capacity.ON_DEMAND, "g5", "a")


@dataclasses.dataclass
class MapApi:
    """Has this ConfigMap, or none."""

    data: dict[str, Any] | None = None

    async def answer(self, request: web.Request) -> web.StreamResponse:
        assert request.path == "/api/v1/namespaces/s/configmaps/offers"
        return (
            local.refused(404, "not found", "NotFound")
            if self.data is None
            else web.json_response({"data": self.data})
        )


def test_prices_are_read_again_and_hold_while_they_cannot_be(caplog: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        api = MapApi()
        async with local.server(api.answer) as client:
            one = prices.Prices(client, "s", "offers")
            await one.read()
            assert one.table == price.Table()
            for data in ({"prices": "on-demand g5 * 4\nspot g5 *"}, {"other": ""}, None):
                api.data = data
                await one.read()
                await one.read()
                rate = one.table.rate(*G5)
                assert rate is not None
                assert rate.price == 4

    local.run(body())
    assert [record.getMessage() for record in caplog.records] == [
        "no prices from ConfigMap offers: there is none in namespace s; make it, with the key prices",
        f"ConfigMap offers: {BROKEN}; this line is left out",
        "no prices from ConfigMap offers: it has no key prices",
        "no prices from ConfigMap offers: there is none in namespace s; make it, with the key prices",
    ]
