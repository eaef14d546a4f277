"""The programs the lab builds from Go modules, and which build of each it wants.

Each module family has a folder below `gomod/` whose go.mod and go.sum pin every line of source.
To move to another version: change go.mod there, run `go mod tidy` in it, commit both files.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

GOMOD = Path(__file__).parent / "gomod"

# Newer kubelets refuse cgroup v1 and the containerd of Debian 12.
KUBERNETES = "k8s.io/kubernetes"


@dataclass(frozen=True)
class Program:
    """One binary: which package of which pinned module it is built from."""

    name: str
    family: str
    """Folder below gomod/."""
    module: str | None
    """None: the source is the folder itself."""
    package: str
    stamps: tuple[str, ...] = ()
    """String variables to set at link time, `{version}`, `{major}` and `{minor}` filled in."""

    @property
    def version(self) -> str:
        """The module version that go.mod pins, such as v1.34.4."""
        if self.module is None:
            return "v1.0.0"
        return pinned_version((GOMOD / self.family / "go.mod").read_text(), self.module)

    def ldflags(self) -> str:
        """Linker flags: no debug tables, and the version a release build would show."""
        major, minor, _ = self.version.removeprefix("v").split(".", 2)
        stamps = (s.format(version=self.version, major=major, minor=minor) for s in self.stamps)
        return " ".join(["-s -w", *(f"-X {stamp}" for stamp in stamps)])


def pinned_version(go_mod: str, module: str) -> str:
    """The version of `module` in the text of a go.mod; ValueError when it is not there."""
    found = re.search(rf"^\s*(?:require\s+)?{re.escape(module)} (v\S+)", go_mod, re.MULTILINE)
    if found is None:
        raise ValueError(f"go.mod does not require {module}")
    return found.group(1)


def cache_key(program: Program, go_version: str, sources: Sequence[bytes]) -> str:
    """Folder name that changes whenever the built bytes could: source, toolchain or flags.

    `sources` are the contents of go.mod, go.sum and the Go files beside them.
    """
    digest = hashlib.sha256()
    for part in (go_version.encode(), *sources, program.package.encode(), program.ldflags().encode()):
        digest.update(len(part).to_bytes(8, "big") + part)
    return f"{program.name}-{program.version}-{digest.hexdigest()[:12]}"


_KUBE = "k8s.io/component-base/version"
_KUBE_STAMPS = (
    f"{_KUBE}.gitVersion={{version}}",
    f"{_KUBE}.gitMajor={{major}}",
    f"{_KUBE}.gitMinor={{minor}}",
    f"{_KUBE}.gitTreeState=clean",
)


def _kube(name: str) -> Program:
    return Program(name, "kubernetes", KUBERNETES, f"{KUBERNETES}/cmd/{name}", _KUBE_STAMPS)


_HELM = "helm.sh/helm/v3"
# What `helm template` takes the cluster for when it sees none: the Kubernetes of this lab.
_HELM_STAMPS = (
    f"{_HELM}/internal/version.version={{version}}",
    f"{_HELM}/internal/version.gitTreeState=clean",
    f"{_HELM}/pkg/lint/rules.k8sVersionMajor=1",
    f"{_HELM}/pkg/lint/rules.k8sVersionMinor=34",
    f"{_HELM}/pkg/chartutil.k8sVersionMajor=1",
    f"{_HELM}/pkg/chartutil.k8sVersionMinor=34",
)

_ETCD = "go.etcd.io/etcd/server/v3"
_COREDNS = "github.com/coredns/coredns"
_KWOK = "sigs.k8s.io/kwok"
_VERSITYGW = "github.com/versity/versitygw"
_JOBSET = "sigs.k8s.io/jobset"
_FAKEGCS = "github.com/fsouza/fake-gcs-server"
_EC2_METADATA = "github.com/aws/amazon-ec2-metadata-mock"
_UNITTEST = "github.com/helm-unittest/helm-unittest"

# In this order: the first is by far the longest and what it compiles serves the next five.
PROGRAMS = (
    _kube("kube-apiserver"),
    _kube("kube-controller-manager"),
    _kube("kube-scheduler"),
    _kube("kubelet"),
    _kube("kube-proxy"),
    _kube("kubectl"),
    Program("etcd", "etcd", _ETCD, _ETCD),
    Program("coredns", "coredns", _COREDNS, _COREDNS),
    Program("kwok", "kwok", _KWOK, f"{_KWOK}/cmd/kwok", (f"{_KWOK}/pkg/consts.Version={{version}}",)),
    Program("versitygw", "versitygw", _VERSITYGW, f"{_VERSITYGW}/cmd/versitygw", ("main.Version={version}",)),
    Program("helm", "helm", _HELM, f"{_HELM}/cmd/helm", _HELM_STAMPS),
    Program("pause", "pause", None, "."),
)

# Not part of a lab: built when something asks for one of them.
OTHERS = (
    Program("jobset", "jobset", _JOBSET, _JOBSET),
    Program("fake-gcs-server", "fake-gcs-server", _FAKEGCS, _FAKEGCS),
    Program(
        "ec2-metadata-mock",
        "amazon-ec2-metadata-mock",
        _EC2_METADATA,
        f"{_EC2_METADATA}/cmd/ec2-metadata-mock",
    ),
    Program("helm-unittest", "helm-unittest", _UNITTEST, f"{_UNITTEST}/cmd/helm-unittest", _HELM_STAMPS),
)
