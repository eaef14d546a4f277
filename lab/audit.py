"""The API server's own record of what was asked of it: one JSON line for each finished request.

Writes to pods with their query (fieldValidation and the like) and status code, those to Jobs and to our
resources with their bodies too; all that the operator's account asks for, without bodies; nothing else, so
that it costs next to nothing.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lab import shell
from lab.state import State

OPERATOR = "system:serviceaccount:spottrain-system:spottrain"
_WRITES = ["create", "update", "patch", "delete", "deletecollection"]
_POLICY: dict[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "omitManagedFields": True,
    "rules": [
        {
            "level": "RequestResponse",
            "verbs": _WRITES,
            "resources": [{"group": "batch"}, {"group": "spottrain.dev"}],
        },
        {
            "level": "Metadata",
            "verbs": _WRITES,
            "resources": [{"group": "", "resources": ["pods", "pods/*"]}],
        },
        {"level": "Metadata", "users": [OPERATOR]},
        {"level": "None"},
    ],
}


def log(state: State) -> Path:
    """Where the record is."""
    return state.log / "audit.jsonl"


def flags(state: State) -> list[shell.Word]:
    """What the API server is started with; writes its policy."""
    policy = state.folder / "audit-policy.json"
    policy.write_text(json.dumps(_POLICY, indent=1) + "\n")
    return ["--audit-policy-file", policy, "--audit-log-path", log(state), "--audit-log-maxsize", 1000]


def requests(state: State, *, user_agent: str = "", user: str = "") -> Iterator[dict[str, Any]]:
    """The requests noted so far, oldest first: of clients whose User-Agent begins so, of one user."""
    with log(state).open() as lines:
        for line in lines:
            if not line.endswith("\n"):
                return  # being written
            event: dict[str, Any] = json.loads(line)
            if user and event["user"].get("username") != user:
                continue
            if event.get("userAgent", "").startswith(user_agent):
                yield event
