"""An editor who names a host of the inside does not learn its address from an error."""

from pathlib import Path

import pytest

from data.failures import SourceFailed
from data.fetch.downloads import download
from data.fetch.query import query
from data.settings import FetchSettings, Settings
from runtime.egress.addresses import checked_addresses, without_addresses
from runtime.egress.request import Request, RequestFailed, status_of
from tasks.bounded.limits import Watch

# A name, and a port at which nothing listens.
NAME = "localhost:1"


def shows_an_address(error: object) -> bool:
    found = checked_addresses("localhost", 1, allow_private=True)
    return any(address in str(error) for address in (*found, "::1"))


@pytest.mark.parametrize("is_allowed", [True, False], ids=["allowed", "refused"])
def test_no_request_says_to_which_address_a_name_leads(tmp_path: Path, is_allowed: bool) -> None:
    request = Request(f"http://{NAME}/a.csv", allow_private=is_allowed)
    settings = FetchSettings(allow_private=is_allowed)

    with pytest.raises(RequestFailed) as unanswered:
        status_of(request, 5)
    with pytest.raises(SourceFailed) as unread:
        download(request, tmp_path / "a", settings, Watch())

    assert not shows_an_address(unanswered.value)
    assert not shows_an_address(unread.value)


def test_no_connection_says_to_which_address_its_host_leads(tmp_path: Path) -> None:
    connections = {"warehouse": f"postgresql+psycopg://u:p@{NAME}/x"}
    settings = Settings.model_validate({"home": tmp_path, "connections": connections})

    with pytest.raises(SourceFailed, match="warehouse: connection failed") as failed:
        query("SELECT 1", "warehouse", tmp_path / "rows", settings, Watch())

    assert not shows_an_address(failed.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('to server at "10.0.0.8", port 5432', 'to server at "…", port 5432'),
        ("db (fe80::1:2), port 5432", "db (…), port 5432"),
        ("at 12:30:05, x::int, 1.5 of 2.0", "at 12:30:05, x::int, 1.5 of 2.0"),
    ],
    ids=["version_4", "version_6", "no_address"],
)
def test_addresses_alone_are_hidden(text: str, shown: str) -> None:
    assert without_addresses(text) == shown
