"""What a store's refusal is called, and what the message says to do.

Where the real server can be made to refuse, it does; else it is answered for, in the published form.
"""

import dataclasses
import datetime as dt
import json
import subprocess
from pathlib import Path

import pytest
from azure.storage.blob import AccountSasPermissions, ResourceTypes, generate_account_sas

from spottrain import errors
from spottrain.checkpoint import azure, gcs, s3
from spottrain.checkpoint.store import Store
from tests.contract import azurite, faults, gateway, services

SKEW = (
    "<RequestTime>20261130T040000Z</RequestTime><ServerTime>2026-11-30T05:00:00Z</ServerTime>"
    "<MaxAllowedSkewMilliseconds>900000</MaxAllowedSkewMilliseconds>"
)
WANTED = {"x-amz-bucket-region": "eu-west-1"}
DATE = (
    "<AuthenticationErrorDetail>Request date header too old: 'Mon, 30 Nov 2026 04:00:00 GMT'"
    "</AuthenticationErrorDetail>"
)

# How S3 refuses → what it is, and what to do.
S3 = {
    "no rights": (faults.Answer(403, "AccessDenied"), errors.StoreDenied, "need s3:ListBucket on the bucket"),
    "expired": (
        faults.Answer(400, "ExpiredToken", "The provided token has expired."),
        errors.StoreDenied,
        "have expired: renew them, or give the pod an identity",
    ),
    "unknown key": (faults.Answer(403, "InvalidAccessKeyId"), errors.StoreDenied, "correct it"),
    "clock": (
        faults.Answer(403, "RequestTimeTooSkewed", more=SKEW),
        errors.StoreDenied,
        "the clock of this machine is wrong by more than 15 minutes",
    ),
    "region": (
        faults.Answer(400, "AuthorizationHeaderMalformed", more="<Region>eu-west-1</Region>"),
        errors.StoreMissing,
        "set checkpoint.region to eu-west-1",
    ),
    "elsewhere": (
        faults.Answer(301, "PermanentRedirect", headers=WANTED),
        errors.StoreMissing,
        "set checkpoint.region to eu-west-1",
    ),
    "busy": (faults.Answer(503, "SlowDown"), errors.StoreUnavailable, "SlowDown"),
}
GOOGLE = {
    "no rights": (
        faults.GoogleAnswer(403, "forbidden", "x does not have storage.objects.list access"),
        errors.StoreDenied,
        "list access; give the pod's service account the role Storage Object User",
    ),
    "busy": (faults.GoogleAnswer(503, "backendError"), errors.StoreUnavailable, "503"),
}
AZURE = {
    "no rights": (
        faults.AzureAnswer(403, "AuthorizationPermissionMismatch"),
        errors.StoreDenied,
        "give the pod's identity the role Storage Blob Data Contributor",
    ),
    "clock": (
        faults.AzureAnswer(403, "AuthenticationFailed", more=DATE),
        errors.StoreDenied,
        "Request date header too old.*or has expired, or this machine's clock is",
    ),
    "expired": (
        faults.AzureAnswer(
            401, "InvalidAuthenticationInfo", "Lifetime validation failed. The token is expired."
        ),
        errors.StoreDenied,
        "The token is expired.*the token is wrong or has expired",
    ),
    "firewall": (
        faults.AzureAnswer(403, "AuthorizationFailure"),
        errors.StoreDenied,
        "the account's firewall",
    ),
    "new refusal": (faults.AzureAnswer(403, "Whatever"), errors.StoreDenied, "do not allow this"),
    "busy": (faults.AzureAnswer(503, "ServerBusy"), errors.StoreUnavailable, "ServerBusy"),
}
CASES = [
    pytest.param(name, *case, id=f"{name}: {what}")
    for name, table in (("s3", S3), ("gcs", GOOGLE), ("azure", AZURE))
    for what, case in table.items()
]


def at(name: str, endpoint: str) -> Store:
    """A store at an address where nobody needs to be."""
    if name == "s3":
        return s3.S3Store("place", "run", endpoint=endpoint, limits=gateway.QUICK)
    if name == "gcs":
        return gcs.GCSStore("place", "run", endpoint=endpoint, limits=gateway.QUICK)
    return azure.AzureStore("place", "run", opened_by=azurite.account(endpoint), limits=gateway.QUICK)


@pytest.mark.parametrize(("name", "answer", "kind", "todo"), CASES)
def test_a_refusal_has_its_kind_and_says_what_to_do(
    name: str, answer: faults.Answer, kind: type[errors.StoreError], todo: str
):
    with faults.proxied("http://127.0.0.1:9") as proxy:
        proxy.rule = lambda _: answer
        with pytest.raises(errors.StoreError, match=f"cannot list(.|\n)*{todo}") as caught:
            at(name, proxy.endpoint).list("")
    assert type(caught.value) is kind


def test_s3_a_wrong_secret_is_denied(
    s3_server: gateway.Gateway, bucket: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    store = services.Amazon(s3_server).open(bucket)
    with pytest.raises(errors.StoreDenied, match="AWS_SECRET_ACCESS_KEY does not go with AWS_ACCESS_KEY_ID"):
        store.list("")


def test_s3_an_unknown_key_is_denied(
    s3_server: gateway.Gateway, bucket: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    store = services.Amazon(s3_server).open(bucket)
    with pytest.raises(errors.StoreDenied, match="does not know AWS_ACCESS_KEY_ID"):
        store.list("")


def test_s3_no_keys_are_denied_with_what_to_set(
    s3_server: gateway.Gateway, bucket: str, monkeypatch: pytest.MonkeyPatch
):
    for name in gateway.KEYS:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    store = services.Amazon(s3_server).open(bucket)
    with pytest.raises(errors.StoreDenied, match="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"):
        store.list("")


def test_gcs_no_credentials_are_denied_with_what_to_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    store = at("gcs", "https://127.0.0.1:9")
    with pytest.raises(errors.StoreDenied, match="set GOOGLE_APPLICATION_CREDENTIALS to a key file"):
        store.list("")


@pytest.mark.parametrize(
    ("answer", "kind", "todo"),
    [
        (
            {"error": "invalid_grant", "error_description": "Invalid JWT: Token must be a short-lived token"},
            errors.StoreDenied,
            "Token must be a short-lived token.*renew them, and see that the clock is set",
        ),
        ({"error": "internal_failure"}, errors.StoreUnavailable, "internal_failure"),
    ],
    ids=["refused", "not now"],
)
def test_gcs_a_key_that_gives_no_token(
    answer: dict[str, str],
    kind: type[errors.StoreError],
    todo: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
):
    with faults.proxied("http://127.0.0.1:9") as tokens:
        tokens.rule = lambda _: faults.Verbatim(400, "", data=json.dumps(answer).encode())
        key = {
            "type": "service_account",
            "client_email": "trainer@project.invalid",
            "token_uri": f"{tokens.endpoint}/token",
            "private_key": made_key(),
            "private_key_id": "1",
        }
        (tmp_path / "key.json").write_text(json.dumps(key))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))
        with pytest.raises(errors.StoreError, match=f"cannot list(.|\n)*{todo}") as caught:
            at("gcs", "https://127.0.0.1:9").list("")
    assert type(caught.value) is kind


def made_key() -> str:
    command = ["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def test_azure_a_wrong_key_is_denied(azure_server: str):
    service = services.Azure(azure_server)
    opened = dataclasses.replace(azurite.account(azure_server), key="d3Jvbmc=")
    store = azure.AzureStore(service.make_place(), "run", opened_by=opened, limits=gateway.QUICK)
    with pytest.raises(errors.StoreDenied, match="cannot list"):
        store.list("")


def test_azure_a_token_that_has_expired_is_denied(azure_server: str):
    service = services.Azure(azure_server)
    token = shared_access(until=dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    opened = azure.Account(azurite.account(azure_server).url, token=token)
    store = azure.AzureStore(service.make_place(), "run", opened_by=opened, limits=gateway.QUICK)
    with pytest.raises(errors.StoreDenied, match="cannot list"):
        store.list("")


def test_azure_a_token_that_holds_opens_the_container(azure_server: str):
    service = services.Azure(azure_server)
    token = shared_access(until=dt.datetime(2100, 1, 1, tzinfo=dt.UTC))
    opened = azure.Account(azurite.account(azure_server).url, token=token)
    assert azure.AzureStore(service.make_place(), "run", opened_by=opened).list("") == []


def shared_access(until: dt.datetime) -> str:
    everything = AccountSasPermissions(read=True, list=True, write=True, delete=True, create=True, add=True)
    return generate_account_sas(
        azurite.NAME, azurite.KEY, ResourceTypes(container=True, object=True), everything, until
    )


def test_azure_no_credentials_are_denied_with_what_to_set(monkeypatch: pytest.MonkeyPatch):
    # The one credential that asks nobody on the network whether it is there.
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "WorkloadIdentityCredential")
    for name in ("AZURE_FEDERATED_TOKEN_FILE", "AZURE_CLIENT_ID", "AZURE_TENANT_ID"):
        monkeypatch.delenv(name, raising=False)
    store = azure.AzureStore(
        "place", "run", opened_by=azure.Account("https://127.0.0.1:9"), limits=gateway.QUICK
    )
    with pytest.raises(errors.StoreDenied, match="set AZURE_STORAGE_CONNECTION_STRING"):
        store.list("")
