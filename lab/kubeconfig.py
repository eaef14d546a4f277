"""Kubeconfig files that hold their certificates, so that they can be copied elsewhere."""

import base64
import json
from pathlib import Path
from typing import Any

from lab.pki import Pair


def render(*, lab: str, server: str, ca: bytes, cert: bytes, key: bytes) -> str:
    """The text of a kubeconfig (JSON, which is YAML too) with one cluster, user and context."""
    cluster = {"server": server, "certificate-authority-data": _encode(ca)}
    user = {"client-certificate-data": _encode(cert), "client-key-data": _encode(key)}
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": lab,
        "clusters": [{"name": lab, "cluster": cluster}],
        "users": [{"name": lab, "user": user}],
        "contexts": [{"name": lab, "context": {"cluster": lab, "user": lab}}],
    }
    return json.dumps(document, indent=2) + "\n"


def write(path: Path, *, lab: str, server: str, ca: Path, pair: Pair) -> Path:
    """Write the kubeconfig of one user, readable by root alone; returns its path."""
    text = render(
        lab=lab,
        server=server,
        ca=ca.read_bytes(),
        cert=pair.cert.read_bytes(),
        key=pair.key.read_bytes(),
    )
    path.touch(mode=0o600)
    path.write_text(text)
    return path


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()
