"""What the YAML of a page is, and the whole object that a part of one belongs to."""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from manifests import render
from tests.docs import pages

Object = dict[str, Any]
GROUP = "spottrain.dev"
SERVED = frozenset(
    {"", "apps", "batch", "policy", "storage.k8s.io", "networking.k8s.io", "scheduling.k8s.io"}
)
"""Groups of the API server: what is of them is held to its schema."""
OTHERS = {
    "jobset.x-k8s.io": "JobSet",
    "karpenter.k8s.aws": "Karpenter",
    "karpenter.sh": "Karpenter",
    "kind.x-k8s.io": "a file for kind, no object",
    "kubeflow.org": "the training operator",
    "kueue.x-k8s.io": "Kueue",
    "eksctl.io": "a file for eksctl, no object",
}
"""Groups whose programs aren't here, by whose they are: what is of them is parsed and no more."""
_CRD = yaml.safe_load(render.CRD.read_text())
SCHEMA: Object = _CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
SPEC = frozenset(SCHEMA["spec"]["properties"])
VALUES: Object = yaml.safe_load((render.CHART / "values.yaml").read_text())
_POD = frozenset(
    {"containers", "initContainers", "nodeSelector", "serviceAccountName", "tolerations", "volumes"}
)
_CONTAINER = frozenset({"name", "image", "command", "args", "env", "envFrom", "resources", "volumeMounts"})
_ELLIPSIS = "…"
_WHOLE: Object = {
    "apiVersion": "spottrain.dev/v1alpha1",
    "kind": "SpotTrainingJob",
    "metadata": {"name": "part"},
    "spec": {
        "workers": 8,
        "checkpoint": {"uri": "s3://bucket/part"},
        "template": {"spec": {"containers": [{"name": "train", "image": "train:1"}]}},
    },
}


class Kind(enum.Enum):
    """How a document is held to what it is."""

    JOB = "a SpotTrainingJob, or a part of one: the API server's dry run takes it"
    OBJECT = "an object of Kubernetes: the API server's dry run takes it"
    VALUES = "values of the chart: helm renders it with them"
    RULES = "Prometheus' rules: promtool takes them"
    FOREIGN = "of a program that isn't here: it can be parsed"
    UNKNOWN = "none of these"


@dataclass(frozen=True)
class Document:
    """One of a block's documents, made whole where it is a part of a job."""

    block: pages.Block
    kind: Kind
    content: Object

    def __str__(self) -> str:
        return f"{self.block} {self.content.get('kind', self.kind.name.lower())}"


class _Loader(yaml.SafeLoader):
    """As the API server reads YAML: a time without quotes stays a string."""


_Loader.yaml_implicit_resolvers = {
    first: [one for one in known if one[0] != "tag:yaml.org,2002:timestamp"]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def documents(block: pages.Block) -> list[Document]:
    """All of a block."""
    try:
        loaded = list(yaml.load_all(block.text, _Loader))
    except yaml.YAMLError as error:
        raise AssertionError(f"{block}: {error}") from error
    return [_document(block, one) for one in loaded if one]


def every(*kinds: Kind) -> Iterator[Document]:
    """Those of all pages that are of the kinds."""
    return (one for block in pages.blocks("yaml") for one in documents(block) if one.kind in kinds)


def example(text: str) -> Document:
    """One that stands in a test, for a kind that no page may have."""
    (one,) = documents(pages.Block("example", 1, "yaml", text))
    return one


def _document(block: pages.Block, content: Any) -> Document:
    if not isinstance(content, dict):
        return Document(block, Kind.UNKNOWN, {"content": content})
    if "apiVersion" in content:
        return Document(block, _of_group(content), content)
    keys = frozenset(content)
    if "groups" in keys:
        return Document(block, Kind.RULES, content)
    if keys <= frozenset(VALUES):
        return Document(block, Kind.VALUES, content)
    for known, path in ((SPEC, ("spec",)), (_POD, _POD_PATH), (_CONTAINER, _CONTAINER_PATH), ({"spec"}, ())):
        if keys <= known:
            return Document(block, Kind.JOB, _merged(_WHOLE, _below(path, content)))
    return Document(block, Kind.UNKNOWN, content)


_POD_PATH = ("spec", "template", "spec")
_CONTAINER_PATH = (*_POD_PATH, "containers", "0")


def _of_group(content: Object) -> Kind:
    group, _, version = str(content["apiVersion"]).rpartition("/")
    if content.get("kind") == "PrometheusRule":
        return Kind.RULES
    if group == GROUP:
        return Kind.JOB
    if group in SERVED:
        return Kind.OBJECT
    return Kind.FOREIGN if group in OTHERS and version else Kind.UNKNOWN


def _below(path: tuple[str, ...], content: Any) -> Any:
    for key in reversed(path):
        content = [{"name": "train", "image": "train:1", **content}] if key == "0" else {key: content}
    return content


def _merged(base: Any, part: Any) -> Any:
    """The part on top; what it leaves to the reader with … is the base's."""
    if not (isinstance(base, Mapping) and isinstance(part, Mapping)):
        return part
    told = {key: value for key, value in part.items() if value != _ELLIPSIS}
    return {**base, **{key: _merged(base.get(key), value) for key, value in told.items()}}
