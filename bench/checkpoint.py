"""`make bench-checkpoint`: what saves and restores cost, beside doing the same by hand, and what kills lose.

Prints a table and writes build/bench/checkpoint.json. docs/benchmarks.md says what is measured and how.
"""

import argparse
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import spottrain
from bench import report as reports
from bench import systems
from bench.report import Bar, Report, finish
from lab import torch_env
from lab.errors import LabError
from tests.contract import faults, gateway

PARTS = ("transfer", "requests", "kills")
SAVES = 5
BUCKET = "bench"
OURS, PLAIN = "spottrain", "plain"
"""As in bench/states.py, which needs torch."""
BARS = {
    "stall_ratio": Bar(1.2),
    "upload_ratio": Bar(0.8, least=True),
    "restore_ratio": Bar(0.8, least=True),
    "commit_requests": Bar(3),
    "kill_fuzz_rounds": Bar(500, least=True),
    "kill_fuzz_losses": Bar(0),
}


def transfer(report: Report, server: gateway.Gateway, folder: Path, size: int, rounds: int) -> None:
    """A large state, with the library and without it."""
    told = [f"--bucket={BUCKET}", f"--endpoint={server.endpoint}", f"--folder={folder}"]
    path = os.pathsep.join([str(systems.ROOT / "operator"), str(systems.ROOT), str(torch_env.ensure())])
    done = subprocess.run(
        [sys.executable, "-m", "bench.states", *told, f"--bytes={size}", f"--rounds={rounds}"],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    said = json.loads(done.stdout.splitlines()[-1])
    for case, whose in said["seconds"].items():
        for who, seconds in whose.items():
            for one in seconds:
                report.add(case, who, one)
    report.notes["state_bytes"] = size
    report.notes["mib_beyond_the_state"] = said["mib_beyond_the_state"]
    report.figure("stall_ratio", _ratio(report, "write", OURS, PLAIN))
    report.figure("upload_ratio", _ratio(report, "upload", PLAIN, OURS))
    report.figure("restore_ratio", _ratio(report, "download", PLAIN, OURS))


def _ratio(report: Report, case: str, above: str, below: str) -> float:
    return report.median(case, above) / report.median(case, below)


@dataclass
class Requests:
    """What a proxy has seen, as `METHOD target`; of these, those of one save."""

    seen: list[str] = field(default_factory=list)

    def note(self, request: faults.Request) -> None:
        """A rule for the proxy that lets everything through."""
        self.seen.append(f"{request.method} {request.target}")

    def of(self, step: int) -> tuple[list[str], list[str]]:
        """Those that committed that step beyond its data's own, and those that came after until the next."""
        mine = rf"/steps/{step:010d}-"
        first = next(i for i, one in enumerate(self.seen) if re.search(mine, one))
        committed = next(i for i, one in enumerate(self.seen) if re.search(mine + ".*COMMIT", one))
        after = self.seen[committed + 1 :]
        data = re.compile(r"(PUT|POST) \S*/steps/(?!\S*COMMIT\.json)")
        end = next((i for i, one in enumerate(after) if data.match(one)), len(after))
        commits = [one for one in self.seen[first : committed + 1] if not data.match(one)]
        return commits, after[:end]


def count_requests(report: Report, server: gateway.Gateway, folder: Path) -> None:
    """Saves of two small files through a proxy that counts; the last but one, which removes one, is taken."""
    with faults.proxied(server.endpoint) as proxy:
        requests = Requests()
        proxy.rule = requests.note
        os.environ["SPOTTRAIN_SCRATCH"] = str(folder)
        uri = f"s3://{BUCKET}/requests"
        with spottrain.session(uri=uri, endpoint=proxy.endpoint, region="us-east-1", keep=2) as run:
            run.restore(lambda _: None)
            for step in range(SAVES):
                run.save(step, _write)
    commits, removals = requests.of(SAVES - 2)
    report.notes["requests"] = {"commit": commits, "removal": removals}
    report.figure("commit_requests", len(commits))
    report.figure("removal_requests", len(removals))


def _write(folder: Path) -> None:
    for name in ("model", "rank"):
        (folder / name).write_text(name)


def kill(report: Report, server: gateway.Gateway, folder: Path, rounds: int, seed: int) -> None:
    """On files and on S3 at the same time, half of the kills each."""
    places = {
        "files": [f"--uri={folder.as_uri()}"],
        "s3": [f"--uri=s3://{BUCKET}/kills", f"--endpoint={server.endpoint}"],
    }
    told = [f"--kills={rounds // len(places)}", f"--seed={seed}"]
    running = {
        name: subprocess.Popen(
            [sys.executable, "-m", "bench.kills", *place, *told], stdout=subprocess.PIPE, text=True
        )
        for name, place in places.items()
    }
    found: dict[str, Any] = {}
    for name, process in running.items():
        output, _ = process.communicate()
        if not output:
            raise LabError(f"the kills on {name} ended with {process.returncode} and said nothing")
        found[name] = json.loads(output.splitlines()[-1])
        reports.say(f"kills on {name}: {json.dumps(found[name])}")
    report.notes["kills"] = found
    report.figure("kill_fuzz_rounds", sum(one["rounds"] for one in found.values()))
    report.figure("kill_fuzz_losses", sum(len(one["losses"]) for one in found.values()))


@contextmanager
def served() -> Iterator[tuple[gateway.Gateway, Path]]:
    """A server with an empty bucket, and a folder on the same disk."""
    reports.OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="checkpoint-", dir=reports.OUT) as made:
        objects, local = Path(made) / "objects", Path(made) / "local"
        objects.mkdir()
        local.mkdir()
        os.environ |= gateway.KEYS
        with gateway.serve(objects) as server:
            server.make_bucket(BUCKET)
            yield server, local


def run(report: Report, options: argparse.Namespace) -> None:
    """All parts, or those that were asked for."""
    with served() as (server, folder):
        if "requests" in options.parts:
            count_requests(report, server, folder)
        if "transfer" in options.parts:
            transfer(report, server, folder, options.bytes, options.rounds)
        if "kills" in options.parts:
            kill(report, server, folder, options.kills, options.seed)


def main(argv: Sequence[str] | None = None) -> int:
    """0 when every bar that was measured is met."""
    parser = argparse.ArgumentParser(prog="python -m bench.checkpoint", description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--rounds", type=int, default=7, help="of saves and loads (default: %(default)s)")
    parser.add_argument("--bytes", type=int, default=2 << 30, help="of the state (default: 2 GiB)")
    parser.add_argument("--kills", type=int, default=500, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="of the kills' moments (default: %(default)s)")
    options = parser.parse_args(argv)
    measure = functools.partial(run, options=options)
    return finish(Report("checkpoint", BARS), measure, LabError, subprocess.CalledProcessError)


if __name__ == "__main__":
    sys.exit(main())
