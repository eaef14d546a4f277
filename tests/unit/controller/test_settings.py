"""Settings from flags and environment."""

import pytest

from spottrain.api import clouds
from spottrain.controller import settings


def test_defaults() -> None:
    parsed = settings.parse([], {})
    assert (parsed.namespaces, parsed.http_port, parsed.decisions.node_loss) == ((), 8080, 5.0)


def test_a_flag_outweighs_the_environment() -> None:
    environment = {"SPOTTRAIN_NODE_LOSS_SECONDS": "7", "SPOTTRAIN_NAMESPACES": "a, b"}
    parsed = settings.parse(["--node-loss-seconds=9"], environment)
    assert (parsed.decisions.node_loss, parsed.namespaces) == (9.0, ("a", "b"))


def test_prices_and_teams_are_asked_for_by_name() -> None:
    parsed = settings.parse(["--prices-map=offers"], {"SPOTTRAIN_TEAM_LABEL": "team"})
    assert (parsed.prices_map, parsed.team_label) == ("offers", "team")


def test_a_pods_name_is_its_identity_in_the_election() -> None:
    assert settings.parse(["--lease=op"], {"POD_NAME": "op-1"}).identity == "op-1"
    one, other = (settings.parse(["--lease=op"], {}) for _ in range(2))
    assert one.identity != other.identity


def test_labels_become_marks() -> None:
    parsed = settings.parse(["--on-demand-labels=pool=paid,tier=gold"], {})
    assert parsed.decisions.on_demand_marks == (
        clouds.Mark("pool", ("paid",)),
        clouds.Mark("tier", ("gold",)),
    )


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--on-demand-labels=pool", '"pool" is not a label; write key=value'),
        ("--node-loss-seconds=-1", "-1 is negative; give a number of seconds"),
        ("--notice-marks=gone", '"gone" marks no node; write taint:KEY, label:KEY=VALUE,'),
        ("--notice-marks=-taint:x", '"taint:x" is not built in, so it cannot be taken away'),
        ("--http-port=x", "invalid literal"),
        (
            "--agents=maybe",
            '"maybe" says neither whether there are agents nor that there are none; write yes',
        ),
    ],
)
def test_nonsense_ends_with_a_sentence(flag: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        settings.parse([flag], {})
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(("said", "expected"), [("", False), ("no", False), ("yes", True)])
def test_the_operator_is_told_whether_agents_are_installed(said: str, expected: bool) -> None:
    assert settings.parse([], {"SPOTTRAIN_AGENTS": said}).decisions.agents is expected
