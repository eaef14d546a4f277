"""The operator's own account on a lab, with the rights of the chart and no others."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import yaml

from lab import audit
from lab.cluster import Lab

ROOT = Path(__file__).parents[2]
NAMESPACE = "spottrain-system"
ACCOUNT = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/spottrain"
KINDS = {"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
TOKEN_SECONDS = 4 * 3600


def grant(lab: Lab) -> None:
    """What manifests/install.yaml gives the operator."""
    documents = yaml.safe_load_all((ROOT / "manifests/install.yaml").read_text())
    wanted = [one for one in documents if one and one["kind"] in KINDS]
    lab.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": wanted}))


def token(lab: Lab) -> str:
    """A token of its account."""
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": TOKEN_SECONDS},
    }
    return str(lab.api.call("POST", f"{ACCOUNT}/token", body).expect("a token")["status"]["token"])


def kubeconfig(lab: Lab, path: Path) -> Path:
    """A file for a process outside the cluster that is to act as the operator's pod would."""
    authority = base64.b64encode((lab.state.pki / "ca.crt").read_bytes()).decode()
    cluster = {"server": lab.addresses.api_url, "certificate-authority-data": authority}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "lab",
        "clusters": [{"name": "lab", "cluster": cluster}],
        "users": [{"name": "operator", "user": {"token": token(lab)}}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "operator"}}],
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(document))
    return path


def denied(lab: Lab) -> Iterator[str]:
    """What it asked for and had no right to, oldest first. A quota's no is not among them."""
    for one in audit.requests(lab.state, user=audit.OPERATOR):
        if one.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid":
            yield f"{one['verb']} {one['requestURI']}"
