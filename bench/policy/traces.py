"""Traces of spot capacity: whether a pool had some, every ten minutes.

Three formats. Those of public collections: JSON with `metadata.gap_seconds` and `data`, where **1 means that
there was none**; the same with `original_trace` and `metadata.start_time`, a window cut out of a longer
series, of which all windows are put together again; either kind also inside a .tar.gz. And our own, `.runs`:
a line for each pool, its name and the lengths of its spells in ticks, the first one with capacity (0 where it
begins without).
"""

import collections.abc as cabc
import dataclasses
import itertools
import json
import tarfile
from pathlib import Path
from typing import Any

from bench import systems
from spottrain.policy import spells

SHIPPED = systems.ROOT / "bench" / "policy" / "traces"
SETS = ("aws2022", "h100")


class TraceError(Exception):
    """A folder that can't be replayed; the text says what to do."""


@dataclasses.dataclass(frozen=True)
class Trace:
    """One pool. `there[i]`: it had capacity in tick i. `group`: the set that it belongs to."""

    group: str
    pool: str
    there: tuple[bool, ...]


def read(folder: Path) -> list[Trace]:
    """All traces in the folder and below it, by set and name.

    Raises:
        TraceError: there are none, one has another interval, or windows of one series contradict each other.

    """
    windows: dict[tuple[str, str], dict[int, bool]] = {}
    found: list[Trace] = []
    for path, text in _files(folder):
        if path.suffix == ".runs":
            found += [Trace(path.stem, *_runs(line)) for line in text.splitlines() if line and line[0] != "#"]
            continue
        document = json.loads(text)
        there = _there(document, path)
        if "original_trace" in document:
            pool = Path(document["original_trace"]).stem
            series = windows.setdefault((_group(path, "aws2022"), pool), {})
            _add(series, document["metadata"]["start_time"], there, path)
        else:
            otherwise = "aws2022" if path.parent == folder else path.parent.name
            found.append(Trace(_group(path, otherwise), path.stem, there))
    found += [Trace(*key, _longest(series)) for key, series in windows.items()]
    if not found:
        raise TraceError(f"{folder}: no traces; name a folder with .json, .tar.gz or .runs files of capacity")
    return sorted(found, key=lambda trace: (trace.group, trace.pool))


def write(traces: cabc.Iterable[Trace]) -> str:
    """As a `.runs` file."""
    lines = []
    for trace in traces:
        lengths = [sum(1 for _ in ticks) for _, ticks in itertools.groupby(trace.there)]
        lines.append(" ".join(map(str, [trace.pool, *[0] * (not trace.there[0]), *lengths])))
    return "\n".join(lines) + "\n"


def _files(folder: Path) -> cabc.Iterator[tuple[Path, str]]:
    """Name and text of each; what macOS leaves beside them is not one."""
    for path in sorted(folder.rglob("*")):
        if path.name.startswith("._"):
            continue
        if path.suffix in {".json", ".runs"}:
            yield path, path.read_text()
        elif path.name.endswith((".tar.gz", ".tgz")):
            with tarfile.open(path) as archive:
                for member in archive:
                    name = Path(member.name)
                    content = archive.extractfile(member)
                    if content and name.suffix == ".json" and not name.name.startswith("._"):
                        yield path / name, content.read().decode()


def _there(document: Any, path: Path) -> tuple[bool, ...]:
    try:
        gap, data = document["metadata"]["gap_seconds"], document["data"]
    except (KeyError, TypeError) as error:
        raise TraceError(f"{path}: no trace: it lacks metadata.gap_seconds or data") from error
    if gap != spells.TICK:
        raise TraceError(f"{path}: a look every {gap} s; only traces of {spells.TICK:.0f} s are replayed")
    return tuple(value == 0 for value in data)


def _group(path: Path, otherwise: str) -> str:
    """The set: that which the file is named after, or the nearest folder that is, or else this."""
    named = (name for part in reversed(path.parts) for name in SETS if name in part.lower())
    return next(named, otherwise)


def _runs(line: str) -> tuple[str, tuple[bool, ...]]:
    pool, *lengths = line.split()
    there = [index % 2 == 0 for index, length in enumerate(lengths) for _ in range(int(length))]
    return pool, tuple(there)


def _add(series: dict[int, bool], start: int, there: tuple[bool, ...], path: Path) -> None:
    for tick, value in enumerate(there, start):
        if series.setdefault(tick, value) != value:
            raise TraceError(f"{path}: another window of the same series says otherwise of tick {tick}")


def _longest(series: dict[int, bool]) -> tuple[bool, ...]:
    """The longest stretch without a gap."""
    best = stretch = 0
    for tick in sorted(series):
        stretch = stretch + 1 if tick - 1 in series else 1
        if stretch > best:
            best, last = stretch, tick
    return tuple(series[tick] for tick in range(last - best + 1, last + 1))
