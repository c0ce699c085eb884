"""What a browser says of itself: whose page sends a change, and where a sign-in leads."""

from types import SimpleNamespace

import pytest
from fastapi import Request

from web.dashboard.session import own_path, refuse_foreign, role_of
from web.problems import Forbidden

OWN = "http://127.0.0.1:8265"
EVIL = "https://evil.example"


def is_ours(headers: dict[str, str], public_url: str = "", scheme: str = "http") -> bool:
    """Return whether a change with these headers comes from a page of ours."""
    web = SimpleNamespace(public_url=public_url)
    installation = SimpleNamespace(settings=SimpleNamespace(web=web))
    app = SimpleNamespace(state=SimpleNamespace(installation=installation))
    sent = {"Host": OWN.partition("//")[2], **headers}
    pairs = [(name.lower().encode(), value.encode()) for name, value in sent.items()]
    scope = {"type": "http", "method": "POST", "path": "/", "query_string": b""}
    try:
        refuse_foreign(Request({**scope, "scheme": scheme, "headers": pairs, "app": app}))
    except Forbidden:
        return False
    return True


@pytest.mark.parametrize(
    ("headers", "ours"),
    [
        pytest.param({"Sec-Fetch-Site": "same-origin"}, True, id="own_page"),
        pytest.param({"Sec-Fetch-Site": "none"}, True, id="typed_by_a_person"),
        pytest.param({"Sec-Fetch-Site": "same-site"}, False, id="a_sister_domain"),
        pytest.param({"Sec-Fetch-Site": "cross-site"}, False, id="another_site"),
        pytest.param({"Sec-Fetch-Site": ""}, False, id="a_word_of_no_browser"),
        # No page can set the header, but its origin is seen through a proxy that says less.
        pytest.param({"Sec-Fetch-Site": "same-origin", "Origin": EVIL}, True, id="proxied"),
        pytest.param({"Sec-Fetch-Site": "cross-site", "Origin": OWN}, False, id="two_words"),
        pytest.param({"Origin": OWN}, True, id="old_own_page"),
        pytest.param({"Origin": EVIL}, False, id="old_another_site"),
        pytest.param({"Origin": "http://127.0.0.1:1"}, False, id="old_another_port"),
        pytest.param({"Origin": OWN.replace("http", "https")}, False, id="old_another_scheme"),
        pytest.param({"Origin": f"{OWN}.evil.example"}, False, id="old_longer_name"),
        pytest.param({"Origin": "null"}, False, id="old_sandbox"),
        pytest.param({"Origin": "null", "Referer": f"{OWN}/"}, False, id="old_sandbox_referer"),
        pytest.param({"Referer": f"{OWN}/actions?q=a"}, True, id="only_own_referer"),
        pytest.param({"Referer": f"{EVIL}/?{OWN}/"}, False, id="only_another_referer"),
        pytest.param({"Origin": "", "Referer": ""}, False, id="empty"),
        pytest.param({}, False, id="nothing"),
    ],
)
def test_a_change_comes_from_a_page_of_ours(headers: dict[str, str], ours: bool) -> None:
    assert is_ours(headers) is ours


@pytest.mark.parametrize(
    ("public_url", "scheme", "host", "origin"),
    [
        pytest.param("", "https", "cron.example", "https://cron.example", id="a_proxy_with_tls"),
        pytest.param(
            "https://cron.example:8443/mb", "http", "x", "https://cron.example:8443",
            id="a_proxy_that_hides_the_host",
        ),
        pytest.param(
            "https://Cron.Example:443", "http", "x", "https://cron.example",
            id="an_address_as_a_person_writes_it",
        ),
    ],
)  # fmt: skip
def test_an_old_browser_behind_a_proxy_is_known_by_the_address_that_it_asked(
    public_url: str, scheme: str, host: str, origin: str
) -> None:
    found = [is_ours({"Host": host, "Origin": one}, public_url, scheme) for one in (origin, EVIL)]

    assert found == [True, False]


@pytest.mark.parametrize(
    "elsewhere",
    [
        *("//evil.example", EVIL, "/\\evil.example", "\\/evil.example", "/\t/evil.example"),
        *("/\n/evil.example", " //evil.example", "evil.example", "///evil.example"),
        *("javascript:alert(1)", "/" + "a" * 3_000, ""),
    ],
)
def test_no_path_leads_to_another_site(elsewhere: str) -> None:
    assert own_path(elsewhere) == "/"


@pytest.mark.parametrize("path", ["/", "/actions?state=on", "/account%3Fa"])
def test_a_path_of_ours_is_continued_to(path: str) -> None:
    assert own_path(path) == path


@pytest.mark.parametrize(
    ("said", "role"),
    [
        *((one, one) for one in ("viewer", "operator", "editor", "admin")),
        *((one, "viewer") for one in ("", "worker", "owner", "Admin", "admin, viewer")),
    ],
)
def test_another_text_for_a_role_is_that_of_a_viewer(said: str, role: str) -> None:
    assert role_of(said) == role
