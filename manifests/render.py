"""Makes the files that are made from others.

These are the chart's copy of the resource, its README's table of values, the rendered install, the reference
of fields and words, and what is made of the declared metrics: their reference, boards and rules.
"""

import argparse
import collections.abc as cabc
import dataclasses
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from lab import build, errors
from manifests import reference
from manifests.monitoring import files

ROOT = Path(__file__).resolve().parent.parent
CRD = ROOT / "crds/spottrain.dev_spottrainingjobs.yaml"
CRD_NAME = "spottrainingjobs.spottrain.dev"
CHART = ROOT / "charts/spottrain"
CRD_COPY = CHART / "files" / CRD.name
README = CHART / "README.md"
INSTALL = ROOT / "manifests/install.yaml"
NAMESPACE = "spottrain-system"
_TABLE_START, _TABLE_END = "<!-- values: made by `make manifests` -->\n", "<!-- end of values -->\n"
_INSTALL_HEAD = """\
# The operator without helm: kubectl apply -f install.yaml
# Made from charts/spottrain with its default values by `make manifests`; not to be edited.
"""


def helm() -> str:
    """The helm program: $HELM, the lab's build of it (made now if need be), or the one on the PATH.

    Raises:
        LabError: there is none and none can be built; the text says how to get it.

    """
    if named := os.environ.get("HELM"):
        return named
    try:
        return str(build.build_one("helm"))
    except errors.LabError as error:
        if found := shutil.which("helm"):
            return found
        raise errors.LabError(f"no helm: install helm 3 and put it on the PATH ({error})") from error


def template(*options: str) -> str:
    """What `helm template` makes of the chart for the usual release name and namespace."""
    line = [helm(), "template", "spottrain", str(CHART), "--namespace", NAMESPACE, *options]
    done = subprocess.run(line, capture_output=True, text=True, check=False)  # noqa: S603 -- helm, by intent
    if done.returncode != 0:
        raise errors.LabError(f"{' '.join(line)}: {done.stderr.strip()}")
    return done.stdout


def documents(text: str) -> list[dict[str, Any]]:
    """The objects of a YAML stream."""
    return [one for one in yaml.safe_load_all(text) if one]


def install() -> str:
    """The install for kubectl alone: a namespace for restricted pods, then the chart without helm's marks."""
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": NAMESPACE,
            "labels": {
                "app.kubernetes.io/name": "spottrain",
                "pod-security.kubernetes.io/enforce": "restricted",
            },
        },
    }
    objects = [namespace, *(_without_helm(one) for one in documents(template()))]
    return _INSTALL_HEAD + yaml.safe_dump_all(objects, sort_keys=False, width=110, explicit_start=True)


def _without_helm(value: Any) -> Any:
    """The same object without the labels and annotations that only mean something to helm."""
    if isinstance(value, list):
        return [_without_helm(one) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {
        key: _without_helm(one)
        for key, one in value.items()
        if not key.startswith("helm.sh/") and (key, one) != ("app.kubernetes.io/managed-by", "Helm")
    }
    return {key: one for key, one in kept.items() if (key, one) != ("annotations", {})}


@dataclasses.dataclass(frozen=True)
class Value:
    """One documented value of the chart."""

    path: str
    default: str
    text: str


def documented_values(text: str) -> list[Value]:
    """The values that a `# --` comment in values.yaml describes, in order."""
    values = yaml.safe_load(text)
    found: list[Value] = []
    parent, comment = "", ""
    for line in text.splitlines():
        word = line.strip()
        if word.startswith("#"):
            said = word.removeprefix("#").strip()
            begun = said.startswith("-- ")
            comment = said.removeprefix("-- ") if begun else f"{comment} {said}" if comment else ""
        elif ":" in word and not word.startswith("- "):
            key = word.partition(":")[0]
            nested = line.startswith("  ")
            path = f"{parent}.{key}" if nested else key
            parent = parent if nested else key
            if comment:
                found.append(Value(path, _default(values, path.split(".")), comment.strip()))
            comment = ""
        else:
            comment = ""
    return found


def _default(values: Any, path: cabc.Sequence[str]) -> str:
    for key in path:
        values = values[key]
    if isinstance(values, bool):
        return str(values).lower()
    if isinstance(values, dict | list):
        return yaml.safe_dump(values, default_flow_style=True, width=1000).strip()
    return f'"{values}"' if values == "" else str(values)


def readme(current: str) -> str:
    """The chart's README with its table of values made anew."""
    head, _, rest = current.partition(_TABLE_START)
    tail = rest.partition(_TABLE_END)[2]
    rows = (
        f"| `{one.path}` | `{one.default}` | {one.text.replace('|', chr(92) + '|')} |"
        for one in documented_values((CHART / "values.yaml").read_text())
    )
    table = "\n".join(("| Value | Default | Meaning |", "|---|---|---|", *rows))
    return f"{head}{_TABLE_START}\n{table}\n\n{_TABLE_END}{tail}"


def outputs() -> dict[Path, str]:
    """Path → wanted text of every file that is made from others."""
    return {
        CRD_COPY: CRD.read_text(),
        README: readme(README.read_text()),
        INSTALL: install(),
        ROOT / reference.PAGE: reference.render(CRD.read_text()),
        **files.outputs(ROOT),
    }


def main(argv: cabc.Sequence[str] | None = None) -> int:
    """Write the files, or with --check return 1 and name the ones that are out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail if a file is out of date")
    check = parser.parse_args(argv).check
    if not check:  # the chart is rendered from its own copy
        shutil.copyfile(CRD, CRD_COPY)
    wanted = outputs()
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        print(f"{path.relative_to(ROOT)}: {'out of date, run `make manifests`' if check else 'written'}")
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path])
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
