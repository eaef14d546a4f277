"""The images the lab has without any registry: pause, a Python base, and what is built on that base."""

import hashlib
import shutil
import tempfile
from pathlib import Path

from lab import archive, build, buildah, clock, context, locks, node_files, shell
from lab.archive import Image

BASE = "docker.io/library/python:3.11-slim-bookworm"
_EDITION = 2  # of how the archives are written: another number makes them anew
_SUITE = "bookworm"
# python-is-python3: the official image has `python` too, though below /usr/local/bin.
_PACKAGES = ("ca-certificates", "python3", "python3-venv", "python-is-python3")
_LEFT_OUT = ("/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*")


def folder() -> Path:
    """Where made images are kept."""
    path = build.cache_root() / "made"
    path.mkdir(parents=True, exist_ok=True)
    return path


def pause(program: Path) -> Image:
    """The image of the container that holds a pod's namespaces."""
    target = folder() / f"{program.parent.name}-{_EDITION}.tar"
    if not target.exists():
        with tempfile.TemporaryDirectory() as scratch:
            layer = Path(scratch, "layer.tar")
            shell.run("tar", "-cf", layer, "-C", program.parent, program.name)
            archive.write(target, node_files.PAUSE_IMAGE, {"Entrypoint": ["/pause"]}, [layer])
    return archive.describe(target)


def base() -> Image:
    """Debian's Python under the name of the official image; 1 to 2 minutes the first time."""
    recipe = repr((_EDITION, _SUITE, _PACKAGES, _LEFT_OUT)).encode()
    target = folder() / f"base-{hashlib.sha256(recipe).hexdigest()[:12]}.tar"
    with locks.held(folder() / "lock"):
        if not target.exists():
            _make_base(target)
    return archive.describe(target)


def _make_base(target: Path) -> None:
    print(f"make {BASE} from Debian's packages ...", end=" ", flush=True)
    started = clock.now()
    with tempfile.TemporaryDirectory(dir=folder()) as scratch:
        layer = Path(scratch, "layer.tar")
        _bootstrap(layer)
        archive.write(target, BASE, {"Cmd": ["python3"], "Env": ["LANG=C.UTF-8", _PATH]}, [layer])
    print(f"{clock.now() - started:.0f} s")


_PATH = "PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"


def _bootstrap(layer: Path) -> None:
    left_out = [f"--dpkgopt=path-exclude={pattern}" for pattern in _LEFT_OUT]
    packages = f"--include={','.join(_PACKAGES)}"
    shell.run("nice", "mmdebstrap", "--variant=minbase", packages, *left_out, _SUITE, layer)


def built(dockerfile_dir: Path, tag: str) -> Image:
    """The image of a Dockerfile that stands on `BASE`; only built when a file it copies has changed.

    `tag` is the full reference, such as docker.io/spottrain/operator:0.1.0.
    """
    archive.check_reference(tag)
    files = context.collect(dockerfile_dir)
    ground = base()
    key = context.digest(dockerfile_dir, files, tag, ground.identity)
    target = folder() / f"{tag.rpartition('/')[2].replace(':', '-')}-{key[:12]}.tar"
    with locks.held(folder() / "lock"):
        if not target.exists():
            _make_built(dockerfile_dir, files, tag, ground, target)
            _forget_older(target, key)
    return archive.describe(target)


def _make_built(source: Path, files: list[Path], tag: str, ground: Image, target: Path) -> None:
    print(f"build image {tag} ...", end=" ", flush=True)
    started = clock.now()
    with tempfile.TemporaryDirectory(dir=folder()) as scratch:
        staged = Path(scratch, "context")
        context.stage(source, files, staged)
        buildah.build(staged, tag, ground, target)
    print(f"{clock.now() - started:.0f} s")


def _forget_older(target: Path, key: str) -> None:
    for old in folder().glob(target.name.replace(key[:12], "*")):
        if old != target:
            old.unlink()


def discard() -> None:
    """Throw all made images away, with the builder's own storage."""
    shutil.rmtree(folder())
    buildah.discard()
