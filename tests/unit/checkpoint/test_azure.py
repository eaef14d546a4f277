import pytest

from spottrain import errors
from spottrain.checkpoint import azure

URL = "https://team.blob.core.windows.net"


@pytest.mark.parametrize(
    ("env", "endpoint", "account"),
    [
        ({"AZURE_STORAGE_ACCOUNT": "team"}, "", azure.Account(URL, "team")),
        ({}, URL, azure.Account(URL, "team")),
        ({"AZURE_STORAGE_KEY": "k=="}, URL, azure.Account(URL, "team", key="k==")),
        ({"AZURE_STORAGE_SAS_TOKEN": "?sv=1&sig=x"}, URL, azure.Account(URL, "team", token="sv=1&sig=x")),
        (
            {"AZURE_STORAGE_CONNECTION_STRING": "AccountName=team;AccountKey=k==;EndpointSuffix=core.test"},
            "",
            azure.Account("https://team.blob.core.test", "team", key="k=="),
        ),
        (
            {
                "AZURE_STORAGE_CONNECTION_STRING": "BlobEndpoint=http://h:1/team;SharedAccessSignature=sv=1&sig=x"
            },
            "",
            azure.Account("http://h:1/team", token="sv=1&sig=x"),
        ),
        (
            {
                "AZURE_STORAGE_CONNECTION_STRING": "AccountName=team;AccountKey=k==",
                "AZURE_STORAGE_ACCOUNT": "x",
            },
            "http://h:1/team",
            azure.Account("http://h:1/team", "team", key="k=="),
        ),
    ],
    ids=[
        "by name",
        "by url",
        "key",
        "token",
        "connection string",
        "token in it",
        "the job's endpoint counts",
    ],
)
def test_the_account_is_found(env: dict[str, str], endpoint: str, account: azure.Account):
    assert azure.account(env, endpoint) == account


def test_without_an_account_it_says_what_to_set():
    with pytest.raises(errors.ConfigError, match=r"set checkpoint\.endpoint to https://ACCOUNT\.blob\.core"):
        azure.account({}, "")


def test_a_key_needs_the_name_of_its_account():
    with pytest.raises(errors.ConfigError, match="set AZURE_STORAGE_ACCOUNT too"):
        azure.account({"AZURE_STORAGE_KEY": "k=="}, "http://10.0.0.1:10000/team")
