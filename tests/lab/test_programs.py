"""Which build of a program is wanted."""

import dataclasses
import re

import pytest

from lab import build
from lab.errors import LabError
from lab.programs import GOMOD, PROGRAMS, Program, cache_key, pinned_version

KUBELET = next(program for program in PROGRAMS if program.name == "kubelet")
SOURCES = [b"go.mod", b"go.sum"]


def test_same_source_toolchain_and_flags_give_the_same_key() -> None:
    """What is in the cache is found again."""
    assert cache_key(KUBELET, "go1.26.8", SOURCES) == cache_key(KUBELET, "go1.26.8", list(SOURCES))


@pytest.mark.parametrize(
    "other",
    [
        cache_key(KUBELET, "go1.26.9", SOURCES),
        cache_key(KUBELET, "go1.26.8", [b"go.mod", b"go.sum changed"]),
        cache_key(KUBELET, "go1.26.8", [b"go.modgo.sum"]),
        cache_key(dataclasses.replace(KUBELET, stamps=()), "go1.26.8", SOURCES),
        cache_key(dataclasses.replace(KUBELET, package="k8s.io/other"), "go1.26.8", SOURCES),
    ],
    ids=["toolchain", "go.sum", "boundary between files", "flags", "package"],
)
def test_any_change_of_what_is_built_gives_another_key(other: str) -> None:
    """A stale binary is never taken for the wanted one."""
    assert other != cache_key(KUBELET, "go1.26.8", SOURCES)


def test_key_begins_with_name_and_version() -> None:
    """The cache can be read by people."""
    assert re.fullmatch(r"kubelet-v1\.34\.\d+-[0-9a-f]{12}", cache_key(KUBELET, "go1.26.8", SOURCES))


@pytest.mark.parametrize(
    ("go_mod", "version"),
    [
        ("require example.org/a v1.2.3\n", "v1.2.3"),
        ("require (\n\texample.org/a/v2 v2.0.0\n\texample.org/a v1.2.3 // indirect\n)\n", "v1.2.3"),
    ],
    ids=["one line", "block"],
)
def test_version_is_read_from_go_mod(go_mod: str, version: str) -> None:
    """Both ways to write a requirement; longer module paths are not mistaken for it."""
    assert pinned_version(go_mod, "example.org/a") == version


def test_module_that_go_mod_lacks_is_an_error() -> None:
    """A typo in the table of programs does not pass silently."""
    with pytest.raises(ValueError, match=r"does not require example\.org/b"):
        pinned_version("require example.org/a v1.2.3\n", "example.org/b")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_every_program_has_pinned_sources(program: Program) -> None:
    """go.mod and go.sum are there, and name the version that is shown."""
    assert program.version.startswith("v")
    assert (GOMOD / program.family / "go.sum").exists()


def test_required_go_is_what_the_modules_ask_for() -> None:
    """A toolchain that passes the check can build every module."""
    asked = [
        build.parse_go_version(re.search(r"^go (\S+)", path.read_text(), re.MULTILINE)[1])  # type: ignore[index]
        for path in GOMOD.glob("*/go.mod")
    ]
    assert max(asked) == build.MINIMUM_GO


@pytest.mark.parametrize(
    ("text", "version"),
    [("go1.26.8", (1, 26)), ("go1.27rc1", (1, 27)), ("go1.30", (1, 30))],
)
def test_go_version_is_read(text: str, version: tuple[int, int]) -> None:
    """Releases, candidates and versions without a patch number."""
    assert build.parse_go_version(text) == version


def test_go_built_from_a_branch_is_refused_in_one_sentence() -> None:
    """Nobody sees a ValueError."""
    with pytest.raises(LabError, match=r"cannot read the Go version 'devel'; install Go"):
        build.parse_go_version("devel")
