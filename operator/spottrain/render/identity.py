"""Whose objects these are: the parts of a SpotTrainingJob that its children's names and owners need."""

import dataclasses
from typing import Any

from spottrain.api import names


@dataclasses.dataclass(frozen=True)
class Identity:
    """A SpotTrainingJob's name and UID."""

    namespace: str
    name: str
    uid: str

    def owner(self) -> dict[str, Any]:
        """An owner reference to the SpotTrainingJob."""
        return owner(names.API_VERSION, names.KIND, self.name, self.uid)


def owner(api_version: str, kind: str, name: str, uid: str) -> dict[str, Any]:
    """A controller's owner reference.

    `blockOwnerDeletion` stays false: true would need `update` on the owner's finalizers where
    OwnerReferencesPermissionEnforcement is on (OpenShift).
    """
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }
