"""Building a Dockerfile without a Docker engine and without a registry."""

import configparser
import io
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from lab import build as programs
from lab import shell
from lab.archive import Image

_BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
_BUNDLE_VARIABLES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE")
# What says where packages come from; paths and habits of this machine mean nothing inside.
_PIP_OPTIONS = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "no-index")

_KEPT_REPLACED = 8


def build(context: Path, tag: str, base: Image, target: Path) -> None:
    """Build `context`/Dockerfile under the name `tag` into the archive `target`.

    pip inside uses this machine's package index and certificates, with no change of the Dockerfile.
    """
    if not shell.succeeds(*_command(), "inspect", "--type", "image", base.identity):
        shell.run(*_command(), "pull", f"docker-archive:{base.archive}")
    shell.run(*_command(), "tag", base.identity, base.reference)
    with tempfile.TemporaryDirectory() as scratch:
        pip_conf = Path(scratch, "pip.conf")
        pip_conf.write_text(pip_settings(_pip_config(), bundle=_BUNDLE))
        shell.run(
            *("nice", *_command(), "bud", "--pull-never", "--layers", "--network", "host"),
            *("--isolation", "oci", "--runtime", shutil.which("runc") or "runc"),
            *("--volume", f"{_host_bundle()}:{_BUNDLE}:ro", "--volume", f"{pip_conf}:/etc/pip.conf:ro"),
            *("--tag", tag, context),
        )
    unfinished = target.with_suffix(".unfinished")
    unfinished.unlink(missing_ok=True)
    shell.run(*_command(), "push", tag, f"docker-archive:{unfinished}:{tag}")
    unfinished.rename(target)
    _forget_old()


def _forget_old() -> None:
    """Remove replaced images but for the newest, whose layers the next build may find useful."""
    listing = ("images", "--filter", "dangling=true", "--quiet", "--no-trunc")
    for identity in shell.run(*_command(), *listing).split()[_KEPT_REPLACED:]:
        # One that a build was broken off on is still in use, and stays.
        shell.succeeds(*_command(), "rmi", identity)


def discard() -> None:
    """Throw away the storage with its layer cache."""
    shutil.rmtree(_storage(), ignore_errors=True)


def pip_settings(config: Mapping[str, str], *, bundle: str) -> str:
    """The text of a pip.conf with what of this machine's settings also holds in a container."""
    parser = configparser.RawConfigParser()
    kept = {option: config[option] for option in _PIP_OPTIONS if option in config}
    parser["global"] = {"cert": bundle, "disable-pip-version-check": "1", **kept}
    text = io.StringIO()
    parser.write(text)
    return text.getvalue()


def parse_pip_config(listing: str) -> dict[str, str]:
    """`pip config list` → option → value; the environment wins over files, as it does in pip."""
    lines = [line.partition("=") for line in listing.splitlines() if "=" in line]
    ordered = sorted(lines, key=lambda parts: parts[0].startswith(":env:"))
    return {name.rpartition(".")[2]: value.strip("'\"") for name, _, value in ordered}


def _pip_config() -> dict[str, str]:
    return parse_pip_config(shell.run("python3", "-m", "pip", "config", "list"))


def _host_bundle() -> str:
    named = (os.environ.get(variable, "") for variable in _BUNDLE_VARIABLES)
    return next((path for path in named if Path(path).is_file()), _BUNDLE)


def _storage() -> Path:
    return programs.cache_root() / "buildah"


def _command() -> tuple[shell.Word, ...]:
    # Storage of its own: what the user keeps in the default one is left alone.
    return ("buildah", "--root", _storage(), "--runroot", "/run/stlab-buildah", "--storage-driver", "overlay")
