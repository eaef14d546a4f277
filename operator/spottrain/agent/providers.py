"""Which cloud this is, and its sources."""

import collections.abc as cabc
import pathlib

from spottrain.agent import alibaba, aws, azure, gcp, notice, wire
from spottrain.agent import clock as clocks
from spottrain.api import clouds

NAMES = ("aws", "gcp", "azure", "alibaba", "none")
_SCHEMES = {"aws": "aws", "gce": "gcp", "azure": "azure", "alicloud": "alibaba"}
_VENDORS = {
    "Amazon EC2": "aws",
    "Google": "gcp",
    "Microsoft Corporation": "azure",
    "Alibaba Cloud": "alibaba",
}
DMI = pathlib.Path("/sys/class/dmi/id")
_AZURE_TAG = "7783-7084-3265-9085-8269-3286-77"
"""The chassis of every machine of Azure; a vendor `Microsoft Corporation` alone may be any Hyper-V."""
PROBES: cabc.Mapping[str, tuple[str, str, str, cabc.Mapping[str, str]]] = {
    "aws": (aws.URL, "PUT", aws.TOKEN, {aws.TTL_HEADER: "60"}),
    "gcp": (gcp.URL, "GET", "/computeMetadata/v1/instance/id", gcp.FLAVOR),
    "azure": (azure.URL, "GET", azure.NAME, azure.HEADERS),
    "alibaba": (alibaba.URL, "GET", "/latest/meta-data/instance-id", {}),
}
"""URL, method, path and headers of a request that only this cloud answers with 200."""
PROBE_TIMEOUT = 2.0


def by_provider_id(provider_id: str) -> str:
    """From a Node's `spec.providerID`; empty if it doesn't tell.

    Alibaba's has no scheme: `cn-hangzhou.i-bp1…`. One that another cloud's scheme names has no notices.
    """
    scheme, separator, _ = provider_id.partition("://")
    if not separator:
        return "alibaba" if ".i-" in provider_id else ""
    return _SCHEMES.get(scheme, "none" if scheme in clouds.PROVIDERS else "")


def by_firmware(dmi: pathlib.Path = DMI) -> str:
    """From what the firmware says of the machine; empty if it doesn't tell."""
    found = _VENDORS.get(_line(dmi / "sys_vendor"), "")
    if found == "azure" and _line(dmi / "chassis_asset_tag") != _AZURE_TAG:
        return ""
    return found


def _line(file: pathlib.Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def by_asking(url: str) -> str:
    """From who answers, at `url` if it is given; empty if nobody does."""
    for name, (own, method, path, headers) in PROBES.items():
        try:
            answer = wire.Service(url or own).ask(path, headers, method=method, timeout=PROBE_TIMEOUT)
        except wire.AnswerError:
            continue
        if answer.status == 200 and (name != "gcp" or answer.headers.get("metadata-flavor") == "Google"):
            return name
    return ""


def sources(
    provider: str, *, url: str, provider_id: str, window: float | None, clock: clocks.Clock
) -> tuple[notice.Source, ...]:
    """The provider's; none for one that gives no notice. `window`: seconds, where the cloud names none."""
    if provider == "aws":
        return aws.sources(url, clock)
    if provider == "gcp":
        return gcp.sources(url, clouds.WINDOWS["gcp"] if window is None else window)
    if provider == "azure":
        return azure.sources(url, provider_id)
    if provider == "alibaba":
        return alibaba.sources(url)
    return ()
