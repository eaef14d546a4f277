"""Image archives in the form `docker save` writes, which buildah and containerd both read."""

import hashlib
import io
import json
import re
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.errors import LabError

# Short names are completed by each tool in its own way, and the kubelet then looks for another one.
_REFERENCE = re.compile(
    r"(?:localhost|[a-z0-9-]+(?:\.[a-z0-9-]+)+)(?::\d+)?(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)+:\w[\w.-]{0,127}"
)


def check_reference(text: str) -> str:
    """The name itself if it has registry and tag; raises LabError otherwise."""
    if _REFERENCE.fullmatch(text) is None:
        raise LabError(f"image name {text!r} must have registry and tag, like docker.io/acme/trainer:1")
    return text


@dataclass(frozen=True)
class Image:
    """An image as an archive holds it."""

    reference: str
    """Name with registry and tag, as the kubelet looks it up."""
    identity: str
    """Digest of the image's configuration: 64 hexadecimal digits."""
    archive: Path


def describe(archive: Path) -> Image:
    """What the archive holds; raises LabError unless it is one named image."""
    try:
        with tarfile.open(archive) as tar:
            member = tar.extractfile("manifest.json")
            manifest = json.load(member) if member else []
    except (OSError, KeyError, ValueError, tarfile.TarError) as error:
        raise LabError(
            f"{archive} is no image archive: write one with `docker save` or `lab image build`"
        ) from error
    named = [(entry["Config"], tag) for entry in manifest for tag in entry.get("RepoTags") or []]
    if len(named) != 1:
        raise LabError(f"{archive} holds {len(named)} image names: save exactly one, with its tag")
    file, tag = named[0]
    return Image(tag, Path(file).name.removeprefix("sha256:").removesuffix(".json"), archive)


def write(archive: Path, reference: str, config: Mapping[str, Any], layers: Sequence[Path]) -> Image:
    """Make an image of uncompressed layer tars (lowest first).

    `config` is the OCI image configuration's "config" object: Cmd, Entrypoint, Env, ...
    """
    digests = [sha256(layer) for layer in layers]
    description = {
        "architecture": "amd64",
        "os": "linux",
        "config": config,
        # buildah counts the layers of a base by its history.
        "history": [{"created_by": "lab"} for _ in digests],
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]},
    }
    body = json.dumps(description).encode()
    identity = hashlib.sha256(body).hexdigest()
    files = [f"{digest}.tar" for digest in digests]
    manifest = [{"Config": f"{identity}.json", "RepoTags": [reference], "Layers": files}]
    unfinished = archive.with_suffix(".unfinished")
    with tarfile.open(unfinished, "w") as tar:
        _add(tar, f"{identity}.json", body)
        _add(tar, "manifest.json", json.dumps(manifest).encode())
        for layer, name in zip(layers, files, strict=True):
            tar.add(layer, arcname=name)
    unfinished.rename(archive)
    return Image(reference, identity, archive)


def sha256(path: Path) -> str:
    """The file's digest in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _add(tar: tarfile.TarFile, name: str, body: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(body)
    tar.addfile(member, io.BytesIO(body))
