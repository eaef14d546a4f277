"""Whether the API server's SpotTrainingJob has every field that this version uses.

Where the resource is older than the operator, the server drops what it doesn't know from whatever is written,
and tells nobody: a limit that a user sets is gone. So it is told here. The operator works on meanwhile:
a gang that nobody restarts is worse than a status that lacks a field.
"""

import asyncio
import logging

from spottrain.api import fields
from spottrain.kube import client as clients
from spottrain.kube import errors

NAME = "spottrainingjobs.spottrain.dev"
PATH = "/openapi/v3" + clients.SPOT_TRAINING_JOBS.prefix
"""Every account may read it, so no right is needed for this; the definition itself would need one."""
_SCHEMA = "dev.spottrain.v1alpha1.SpotTrainingJob"
_REMEDY = "apply crds/ of this version (docs/install.md#upgrading)"
_MISSING = f"the resource {NAME} is missing: {_REMEDY}"
_AGAIN = 300.0
_AGAIN_WHILE_WRONG = 2.0
_log = logging.getLogger(__name__)


class Served:
    """What is wrong with the served resource, read again every 5 minutes, every 2 s while something is.

    After a restart a server may lack for a moment what it served before: where all was well, that the
    resource is missing is believed when it is found twice in a row.
    """

    def __init__(self, client: clients.Client) -> None:
        self.fault = f"the resource {NAME}: its fields were not read yet"
        """A sentence, or nothing when all is well."""
        self.lacking: frozenset[str] = frozenset()
        """The fields that the server drops, as far as is known."""
        self._client = client
        self._missed = False
        """It was missing when it was last read."""

    async def run(self) -> None:
        """Read it again and again, until cancelled."""
        while True:
            await self.read()
            await asyncio.sleep(_AGAIN_WHILE_WRONG if self.fault or self._missed else _AGAIN)

    async def read(self) -> None:
        """Ask for it once. What was found well stays so when there is no answer."""
        missed, self._missed = self._missed, False
        try:
            schema = _schema(await self._client.request("GET", PATH))
        except errors.NotFoundError:
            schema = None
        except errors.RefusedError as error:
            if self.fault:
                _log.warning("can't tell whether %s has all fields: %s", NAME, error)
            self.fault, self.lacking = "", frozenset()
            return
        except errors.KubeError as error:
            if self.fault:
                self._tell(f"the fields of the resource {NAME} can't be read: {error}")
            return
        self._missed = schema is None
        if schema is not None:
            lacking = fields.lacking(schema)
            self.lacking = frozenset(lacking)
            self._tell(_older(lacking))
        elif self.fault or missed:
            self._tell(_MISSING)

    def _tell(self, fault: str) -> None:
        if fault and fault != self.fault:
            _log.error(fault)
        self.fault = fault


def _schema(found: clients.Object) -> fields.Schema | None:
    """Ours of the API that was published, if it is among them."""
    components = found.get("components")
    schemas = components.get("schemas") if isinstance(components, dict) else None
    ours = schemas.get(_SCHEMA, {}) if isinstance(schemas, dict) else None
    if not isinstance(ours, dict):
        raise errors.UnreadableError(f"GET {PATH}", "the answer holds no components.schemas")
    return ours or None


def _older(lacking: list[str]) -> str:
    if not lacking:
        return ""
    return f"the resource {NAME} is older than this operator and drops {fields.shown(lacking)}: {_REMEDY}"
