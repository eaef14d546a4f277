"""The agent's small HTTP server."""

from collections.abc import Iterator
from typing import Any

import pytest

from spottrain.agent import metrics, serve


@pytest.fixture
def server() -> Iterator[Any]:
    nobody_asks_it: Any = None
    one = serve.serve(0, nobody_asks_it, metrics.Metrics(()), lambda: True)
    yield one
    one.shutdown()
    one.server_close()


@pytest.mark.parametrize(("error", "told"), [(BrokenPipeError(), False), (ValueError("a fault"), True)])
def test_of_a_scraper_that_gave_up_nothing_is_told_and_of_a_fault_all(
    server: Any, capsys: pytest.CaptureFixture[str], error: Exception, told: bool
) -> None:
    try:
        raise error  # noqa: TRY301
    except Exception:  # noqa: BLE001 - as socketserver does
        server.handle_error(None, ("127.0.0.1", 1))

    assert (type(error).__name__ in capsys.readouterr().err) == told
