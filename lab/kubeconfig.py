"""Kubeconfig files that hold their certificates, so that they can be copied elsewhere."""

import base64
import json
from pathlib import Path
from typing import Any

from lab.pki import Pair


def render(*, lab: str, server: str, ca: bytes, user: dict[str, str]) -> str:
    """The text of a kubeconfig (JSON, which is YAML too) with one cluster, user and context."""
    cluster = {"server": server, "certificate-authority-data": _encode(ca)}
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": lab,
        "clusters": [{"name": lab, "cluster": cluster}],
        "users": [{"name": lab, "user": user}],
        "contexts": [{"name": lab, "context": {"cluster": lab, "user": lab}}],
    }
    return json.dumps(document, indent=2) + "\n"


def write(path: Path, *, lab: str, server: str, ca: Path, user: Pair | str) -> Path:
    """Write the kubeconfig of one user, who has a certificate or a token; readable by root alone.

    Returns its path.
    """
    text = render(lab=lab, server=server, ca=ca.read_bytes(), user=_user(user))
    path.touch(mode=0o600)
    path.write_text(text)
    return path


def _user(user: Pair | str) -> dict[str, str]:
    if isinstance(user, str):
        return {"token": user}
    return {
        "client-certificate-data": _encode(user.cert.read_bytes()),
        "client-key-data": _encode(user.key.read_bytes()),
    }


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()
