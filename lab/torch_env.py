"""A torch environment for CPython 3.11, installed once under /opt and mounted read-only into pods.

PyPI's torch for Linux is the CUDA build and does not import without its CUDA libraries, so the whole set
comes: about 5.4 GB on disk, two minutes on a good line. The frameworks on top of it (Hugging Face, Lightning,
torchdata) are a second layer, to come after it on PYTHONPATH. Every version is pinned, dependencies included,
and nothing is resolved at install time. `python -m lab.torch_env` installs what is missing and prints the
paths.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from lab import clock, locks
from lab.errors import LabError

ROOT = Path("/opt/spottrain")
PYTHON_VERSION = "3.11"
# The images are Debian 12, whose C library is 2.36.
NEWEST_GLIBC_MINOR = 36

# What `pip install torch==2.15.0 scikit-learn==1.9.1 numpy==2.4.6` resolved to.
PINS = (
    "cloudpickle==3.1.3",
    "cuda-bindings==13.5.0",
    "cuda-pathfinder==1.9.1",
    "cuda-toolkit==13.2.2",
    "filelock==4.3.1",
    "fsspec==2026.9.0",
    "Jinja2==3.1.6",
    "joblib==1.6.0",
    "MarkupSafe==3.0.4",
    "mpmath==1.3.0",
    "narwhals==2.29.0",
    "networkx==3.6.1",
    "numpy==2.4.6",
    "nvidia-cublas==13.4.1.3",
    "nvidia-cuda-cccl==13.3.5.0.6",
    "nvidia-cuda-cupti==13.2.86",
    "nvidia-cuda-nvrtc==13.2.86",
    "nvidia-cuda-runtime==13.2.86",
    "nvidia-cudnn-cu13==9.26.0.51",
    "nvidia-cufft==12.2.0.57",
    "nvidia-cufile==1.17.1.22",
    "nvidia-cusolver==12.2.0.11",
    "nvidia-cusparse==12.7.10.12",
    "nvidia-cusparselt-cu13==0.8.1",
    "nvidia-nccl-cu13==2.30.7",
    "nvidia-nvjitlink==13.5.37",
    "nvidia-nvshmem-cu13==3.7.2",
    "nvidia-nvtx==13.2.86",
    "scikit-learn==1.9.1",
    "scipy==1.17.1",
    "setuptools==84.2.1",
    "sympy==1.14.0",
    "threadpoolctl==3.8.0",
    "torch==2.15.0",
    "triton==3.9.0",
    "typing_extensions==4.16.0",
)


# What `pip install transformers==5.23.0 accelerate==1.15.0 lightning==2.6.6 torchdata==0.11.0` adds to it.
FRAMEWORK_PINS = (
    "accelerate==1.15.0",
    "aiohappyeyeballs==2.7.1",
    "aiohttp==3.14.5",
    "aiosignal==1.4.0",
    "annotated-doc==0.0.7",
    "annotated-types==0.8.0",
    "anyio==4.16.0",
    "attrs==26.1.0",
    "certifi==2026.10.19.post1",
    "charset-normalizer==3.5.3",
    "click==8.5.1",
    "frozenlist==1.8.0",
    "h11==0.16.0",
    "hf-xet==1.8.0",
    "httpcore2==2.16.2",
    "httpx2==2.16.2",
    "huggingface_hub==2.4.0",
    "idna==3.20",
    "lightning==2.6.6",
    "lightning-utilities==0.15.3",
    "markdown-it-py==4.3.0",
    "mdurl==0.1.2",
    "multidict==7.2.1",
    "packaging==26.4",
    "propcache==0.5.4",
    "psutil==7.2.2",
    "pydantic==2.14.4",
    "pydantic_core==2.50.5",
    "Pygments==2.21.0",
    "pytorch-lightning==2.6.6",
    "PyYAML==6.0.4",
    "regex==2026.11.19",
    "requests==2.34.2",
    "rich==15.0.0",
    "safetensors==0.8.0",
    "shellingham==1.5.4",
    "tokenizers==0.23.3",
    "torchdata==0.11.0",
    "torchmetrics==1.9.0",
    "tqdm==4.70.1",
    "transformers==5.23.0",
    "truststore==0.10.5",
    "typer==0.29.2",
    "typing-inspection==0.4.5",
    "urllib3==2.8.0",
    "yarl==1.25.1",
)


@dataclass(frozen=True)
class Layer:
    """Packages that are installed together: where below ROOT, and what they need on the disk."""

    name: str
    pins: tuple[str, ...]
    size: str
    free_gib: int

    @property
    def key(self) -> str:
        """Changes with what is in it."""
        text = "\n".join((PYTHON_VERSION, platform.machine(), *self.pins))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def stable_path(self, root: Path = ROOT) -> Path:
        """The path for PYTHONPATH and hostPath volumes: a link to the environment of the current pins."""
        return root / self.name

    def ensure(self, root: Path = ROOT) -> Path:
        """Install the layer unless it is there (safe from several processes); return `stable_path`."""
        target = root / f"{self.name}-{self.key}"
        if not target.is_dir():
            root.mkdir(parents=True, exist_ok=True)
            with locks.held(root / f".{self.name}.lock"):
                if not target.is_dir():
                    _install(self, target)
        _point(self.stable_path(root), target)
        return self.stable_path(root)


TORCH = Layer("torch", PINS, "5.4 GB", 10)
FRAMEWORKS = Layer("frameworks", FRAMEWORK_PINS, "0.3 GB", 2)


def stable_path(root: Path = ROOT) -> Path:
    """Where torch is found."""
    return TORCH.stable_path(root)


def ensure(root: Path = ROOT) -> Path:
    """Install torch unless it is there; where it is found."""
    return TORCH.ensure(root)


def _install(layer: Layer, target: Path) -> None:
    free = shutil.disk_usage(target.parent).free / 2**30
    if free < layer.free_gib:
        raise LabError(
            f"{target.parent} has {free:.1f} GiB free, the {layer.name} environment needs {layer.free_gib}: "
            "free some space"
        )
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    packages = f"{len(layer.pins)} packages (about {layer.size})"
    _say(f"{layer.name} environment: installing {packages} into {target}")
    started = clock.now()
    previous = os.umask(0o022)
    try:
        _run(layer, _pip_command(layer, partial), started)
    finally:
        os.umask(previous)
    partial.rename(target)
    _say(f"{layer.name} environment: ready after {clock.now() - started:.0f} s")


def _pip_command(layer: Layer, target: Path) -> list[str]:
    arch = platform.machine()
    platforms = [f"manylinux_2_{minor}_{arch}" for minor in range(17, NEWEST_GLIBC_MINOR + 1)]
    command = [
        *_pip(),
        "install",
        "--no-deps",
        "--no-cache-dir",
        "--progress-bar=off",
        "--root-user-action=ignore",
        f"--target={target}",
        f"--python-version={PYTHON_VERSION}",
        "--implementation=cp",
        "--only-binary=:all:",
    ]
    platforms.append(f"manylinux2014_{arch}")
    return [*command, *(f"--platform={name}" for name in platforms), *layer.pins]


def _pip() -> list[str]:
    """A pip, by preference that of a Python 3.11: then the byte code it compiles is what the pods load."""
    candidates = [sys.executable, shutil.which("python3.11"), shutil.which("python3")]
    with_pip = [python for python in candidates if python and _has_pip(python)]
    if not with_pip:
        raise LabError("no pip found; install it (Debian: apt-get install python3-pip)")
    return [min(with_pip, key=lambda python: not _is_target(python)), "-m", "pip"]


def _has_pip(python: str) -> bool:
    return (
        subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0
    )


def _is_target(python: str) -> bool:
    shown = subprocess.run([python, "--version"], capture_output=True, check=True, text=True)
    return shown.stdout.startswith(f"Python {PYTHON_VERSION}.")


def _run(layer: Layer, command: list[str], started: float) -> None:
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        lines: list[str] = []
        for line in process.stdout or ():
            lines.append(line)
            words = line.split()
            if words and words[0] in {"Collecting", "Installing"}:
                _say(f"{layer.name} environment: {clock.now() - started:5.0f} s  {' '.join(words[:2])}")
    if process.returncode != 0:
        raise LabError(f"pip ended with {process.returncode}; its last lines:\n{''.join(lines[-15:])}")


def _point(link: Path, target: Path) -> None:
    if link.is_symlink() and link.readlink() == Path(target.name):
        return
    fresh = link.with_name(f".{link.name}.{os.getpid()}")
    fresh.symlink_to(target.name)
    fresh.rename(link)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    """Install what is missing and print the paths."""
    try:
        paths = [layer.ensure() for layer in (TORCH, FRAMEWORKS)]
    except LabError as error:
        _say(f"error: {error}")
        return 1
    print(":".join(map(str, paths)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
