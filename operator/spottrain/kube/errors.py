"""What can go wrong between us and the API server.

::

    KubeError
    ├── ApiError             the server answered with an error status
    │   ├── NotFoundError    404
    │   ├── ConflictError    409: exists already, or changed meanwhile
    │   ├── RefusedError     400, 403, 422: its words are for the user
    │   └── ExpiredError     410: the watch is too far behind
    ├── UnreachableError     no answer: connection, TLS, timeout
    └── UnreadableError      an answer in a shape that the API server's never have
"""

import json


class KubeError(Exception):
    """Any of them. `retry_after` is how many seconds the server wants us to wait (429, 503), if it said."""

    retry_after: float | None = None


class UnreachableError(KubeError):
    """No answer came."""


class UnreadableError(KubeError):
    """What came is not what the API server answers. Whether a write was done isn't known then."""

    def __init__(self, asked: str, found: str) -> None:
        super().__init__(f"{asked}: {found}: see whether a proxy answers in the API server's place")


class ApiError(KubeError):
    """An answer with an error status; `message` is the server's own text."""

    def __init__(self, code: int, reason: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(f"{code} {reason}: {message}")
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after = retry_after


class NotFoundError(ApiError):
    """The object, or the namespace it should be in, isn't there."""


class ConflictError(ApiError):
    """It exists already, or it has changed since it was read."""


class RefusedError(ApiError):
    """The request itself is not acceptable: invalid, forbidden, over quota."""


class ExpiredError(ApiError):
    """The resource version asked for is gone; list anew."""


_CLASSES = {400: RefusedError, 403: RefusedError, 404: NotFoundError, 409: ConflictError, 410: ExpiredError}
_CLASSES[422] = RefusedError


def from_answer(code: int, body: str, retry_after: str | None = None) -> ApiError:
    """The error for an answer whose body is a `metav1.Status` (or, from a proxy in between, any text)."""
    try:
        status = json.loads(body)
    except ValueError:
        status = {}
    if not isinstance(status, dict):
        status = {}
    reason = status.get("reason") or "Unknown"
    message = status.get("message") or body[:500]
    seconds = float(retry_after) if retry_after and retry_after.isdigit() else None
    return _CLASSES.get(code, ApiError)(code, reason, message, seconds)
