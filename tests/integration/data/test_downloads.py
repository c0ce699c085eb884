"""Downloads from a real web server: bounds, redirects, addresses, leftovers."""

import gzip
import socket
from pathlib import Path
from typing import Any

import pytest

from data.failures import SourceFailed, Stopped
from data.fetch.downloads import download, probe
from data.fetch.sources import Fetched, fetch, source_of
from data.settings import FetchSettings, Settings
from minutebook.testing import make_context
from runtime.egress.request import Request
from tasks.bounded.limits import Watch
from tests.servers import free_port
from tests.web_source import Page, WebSource

OPEN = FetchSettings(allow_private=True)


def fetched(web: WebSource, folder: Path, path: str = "/a", fetch: FetchSettings = OPEN) -> bytes:
    """Download `path`, keep it as the last one, and return what came."""
    fetch_csv(web.url + path, folder, fetch).keep()
    return (folder / "a").read_bytes()


def fetch_csv(
    url: str, folder: Path, limits: FetchSettings = OPEN, watch: Watch | None = None
) -> Fetched:
    """Fetch the CSV of a URL, to be kept in `folder` as the file `a`."""
    source, settings = source_of({"url": url, "format": "csv"}), Settings(home=folder, fetch=limits)
    return fetch(source, folder / "a", settings, watch or Watch(), make_context())


def test_redirects_are_followed(web: WebSource, tmp_path: Path) -> None:
    web.pages["/a"] = Page(status=302, headers={"Location": "/b"}, body=b"elsewhere")
    web.pages["/b"] = Page(b"id\n1\n")

    assert fetched(web, tmp_path) == b"id\n1\n"


def test_a_circle_of_redirects_ends(web: WebSource, tmp_path: Path) -> None:
    web.pages["/a"] = Page(status=302, headers={"Location": "/a"})

    with pytest.raises(SourceFailed, match="redirects more than 5 times"):
        fetched(web, tmp_path)
    assert len(web.requests) == 6


def test_a_redirect_to_another_scheme_is_refused(web: WebSource, tmp_path: Path) -> None:
    web.pages["/a"] = Page(status=302, headers={"Location": "file:///etc/hosts"})

    with pytest.raises(SourceFailed):
        fetched(web, tmp_path)
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(Page(b"x" * 2_000), id="announced"),
        pytest.param(Page(b"x" * 2_000, headers={"Connection": "close"}), id="closing"),
    ],
)
def test_what_is_too_large_is_refused(web: WebSource, tmp_path: Path, page: Page) -> None:
    web.pages["/a"] = page

    with pytest.raises(SourceFailed, match="larger than SCHED_FETCH_MAX_BYTES=1000") as failed:
        fetched(web, tmp_path, fetch=FetchSettings(allow_private=True, max_bytes=1_000))

    assert failed.value.permanent
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("encoding", ["gzip, gzip, gzip", "gzip", "br", "Identity, x-gzip"])
def test_a_packed_response_is_refused_unread(web: WebSource, tmp_path: Path, encoding: str) -> None:
    bomb = b"0" * (64 << 20)
    for _ in range(3):
        bomb = gzip.compress(bomb)
    web.pages["/a"] = Page(bomb, headers={"Content-Encoding": encoding})

    with pytest.raises(SourceFailed, match=r"Content-Encoding .*; let the server send") as failed:
        fetched(web, tmp_path)

    assert failed.value.permanent
    assert list(tmp_path.iterdir()) == []
    assert probe(Request(f"{web.url}/a"), OPEN) is None


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(Page(b"x" * 10_000, trickle_s=0.2), id="trickles"),
        pytest.param(Page(b"x", trickle_s=6000), id="says_nothing"),
    ],
)
def test_a_server_that_is_too_slow_is_given_up(web: WebSource, tmp_path: Path, page: Page) -> None:
    web.pages["/a"] = page

    with pytest.raises(SourceFailed, match=r"took longer than SCHED_FETCH_TIMEOUT_S=0\.3"):
        fetched(web, tmp_path, fetch=FetchSettings(allow_private=True, timeout_s=0.3))

    assert list(tmp_path.iterdir()) == []


def test_a_download_that_breaks_off_leaves_the_last_one(web: WebSource, tmp_path: Path) -> None:
    web.pages["/a"] = Page(b"id\n1\n")
    fetched(web, tmp_path)
    web.pages["/a"] = Page(b"x" * 100_000, part=50_000)

    with pytest.raises(SourceFailed, match="the answer is incomplete"):
        fetched(web, tmp_path)

    assert (tmp_path / "a").read_bytes() == b"id\n1\n"
    assert len(list(tmp_path.iterdir())) == 1


def test_two_refreshes_at_once_each_read_what_they_downloaded(
    web: WebSource, tmp_path: Path
) -> None:
    web.pages["/a"] = Page(b"id\n1\n2\n", headers={"ETag": '"one"'})
    one = fetch_csv(f"{web.url}/a", tmp_path / "kept")
    web.pages["/a"] = Page(b"id\n7\n", headers={"ETag": '"two"'})
    two = fetch_csv(f"{web.url}/a", tmp_path / "kept")

    assert [one.data.file.read_bytes(), two.data.file.read_bytes()] == [b"id\n1\n2\n", b"id\n7\n"]
    two.keep()
    one.keep()
    assert [one.validators["etag"], two.validators["etag"]] == ['"one"', '"two"']
    assert list((tmp_path / "kept").iterdir()) == [tmp_path / "kept" / "a"]


def test_a_stop_ends_a_download(web: WebSource, tmp_path: Path) -> None:
    web.pages["/a"] = Page(b"x" * 10_000, trickle_s=0.01)

    with pytest.raises(Stopped):
        fetch_csv(f"{web.url}/a", tmp_path, watch=Watch(should_stop=lambda: True))

    assert list(tmp_path.iterdir()) == []


def test_a_probe_asks_for_one_byte(web: WebSource) -> None:
    at = "Mon, 23 Nov 2026 06:00:00 GMT"
    web.pages["/a"] = Page(b"x", status=206, headers={"ETag": '"x"', "Last-Modified": at})

    answer = probe(Request(f"{web.url}/a"), OPEN)

    assert answer is not None
    assert answer.validators == {"etag": '"x"', "last_modified": at}
    assert web.requests == [("/a", "bytes=0-0")]


def test_a_probe_that_fails_says_nothing(web: WebSource) -> None:
    assert probe(Request(f"{web.url}/absent"), OPEN) is None
    assert probe(Request(f"http://127.0.0.1:{free_port()}/a"), OPEN) is None
    assert probe(Request(f"{web.url}/a"), FetchSettings()) is None


def test_a_source_sends_its_headers(web: WebSource, tmp_path: Path) -> None:
    web.pages["/a"] = Page(b"id\n1\n")
    wanted = Request(f"{web.url}/a", {"Authorization": "Bearer s3cret", "User-Agent": "mine"})

    download(wanted, tmp_path / "a", OPEN, Watch())

    assert [one.get("authorization") for one in web.headers] == ["Bearer s3cret"]
    assert web.headers[0]["user-agent"] == "minutebook"
    assert web.headers[0]["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    "secret",
    [
        pytest.param({"headers": {"X-Token": "s3cret"}}, id="headers"),
        pytest.param({"name": "env:SOURCE_URL"}, id="url"),
    ],
)
def test_what_carries_a_secret_is_redirected_nowhere(
    web: WebSource, tmp_path: Path, secret: dict[str, Any]
) -> None:
    web.pages["/a"] = Page(status=302, headers={"Location": "/b"})
    web.pages["/b"] = Page(b"id\n1\n")

    with pytest.raises(SourceFailed, match="answered 302 Found, a redirect"):
        download(Request(f"{web.url}/a", **secret), tmp_path / "a", OPEN, Watch())

    assert web.downloads("/b") == 0


def test_a_name_that_means_another_address_a_moment_later_is_not_followed(
    web: WebSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first look-up is checked, and the connection goes to what it said."""
    from runtime.egress import addresses

    port = int(web.url.rpartition(":")[2])
    asked: list[str] = []

    look_up: Any = socket.getaddrinfo

    def rebinding(host: str, *rest: Any, **named: Any) -> Any:
        if host != "rebind.test":
            return look_up(host, *rest, **named)
        asked.append(host)
        # The second answer would lead to the server of this test.
        answer = "192.0.2.1" if len(asked) == 1 else "127.0.0.1"
        return [(2, 1, 6, "", (answer, port))]

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    is_public = addresses.is_public
    monkeypatch.setattr(addresses, "is_public", lambda a: a == "192.0.2.1" or is_public(a))
    settings = FetchSettings(timeout_s=0.3)

    with pytest.raises(SourceFailed):
        download(Request(f"http://rebind.test:{port}/a"), tmp_path / "a", settings, Watch())

    assert asked == ["rebind.test"]
    assert web.requests == []


def test_the_next_address_of_a_name_is_tried_where_nothing_listens(
    web: WebSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = int(web.url.rpartition(":")[2])
    look_up: Any = socket.getaddrinfo

    def looked_up(host: str, *rest: Any, **named: Any) -> Any:
        if host != "two.test":
            return look_up(host, *rest, **named)
        # As `localhost` is `::1` and `127.0.0.1` on many machines.
        return [(2, 1, 6, "", (address, port)) for address in ("127.0.0.2", "127.0.0.1")]

    monkeypatch.setattr(socket, "getaddrinfo", looked_up)
    web.pages["/a"] = Page(b"id\n1\n")

    download(Request(f"http://two.test:{port}/a"), tmp_path / "a", OPEN, Watch())

    with pytest.raises(SourceFailed, match=r"two\.test leads to a private address") as failed:
        download(Request(f"http://two.test:{port}/a"), tmp_path / "a", FetchSettings(), Watch())
    assert failed.value.permanent
    assert [one["host"] for one in web.headers] == [f"two.test:{port}"]
