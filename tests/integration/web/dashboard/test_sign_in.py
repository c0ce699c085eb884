"""Who may see the pages: sign-in by tokens and links."""

import hmac
import re
from datetime import datetime, timedelta
from hashlib import sha256

import httpx
import pytest
import sqlalchemy as sa

from models.roles import Role, TokenKind
from models.sql import database_now
from models.store.bearers import SIGNED_IN_FOR
from models.tables import tokens as stored
from runtime.clock import utc_now
from services import tokens
from services.tokens import sessions
from tests.integration.web.conftest import APP, Web
from tests.integration.web.dashboard.conftest import Browse
from tests.transactions import execute, fetched

SIGNED_OUT = (303, "/sign-in?next=/account")


def answer_of(browser: httpx.Client, path: str = "/account") -> tuple[int, str | None]:
    """Return the status of a page, and where it leads."""
    found = browser.get(path)
    return found.status_code, found.headers.get("location")


def link_of(web: Web, role: Role = Role.ADMIN, app: str | None = None) -> str:
    seen = web.opened.for_request(app, is_bound=app is not None, bearer="tests")
    return "/sign-in/" + sessions.make_link(seen, role).url.rpartition("/")[2]


def test_a_token_signs_in_by_a_cookie_that_no_script_can_read(web: Web, browse: Browse) -> None:
    browser = browse(web, role=None)

    answer = browser.post(
        "/sign-in", data={"token": f" {web.token()}\n", "next": "/actions?state=on"}
    )

    assert (answer.status_code, answer.headers["location"]) == (303, "/actions?state=on")
    assert re.fullmatch(
        r"mb_session=mbs_[0-9a-f]{12}_\d{10}_[0-9a-f]{64}; "
        "HttpOnly; Max-Age=43200; Path=/; SameSite=lax",
        answer.headers["set-cookie"],
    )
    assert answer_of(browser) == (200, None)
    assert answer_of(browser, "/sign-in?next=/health") == (303, "/health")


@pytest.mark.parametrize("wrong", ["mbt_0_x", "mbt_\0_x", "mbt_" + "é" * 50_000])
def test_a_wrong_token_is_named_beside_its_field(shared: Web, browse: Browse, wrong: str) -> None:
    form = {"token": wrong, "next": "/actions"}
    answer = browse(shared, role=None).post("/sign-in", data=form)

    assert answer.status_code == 401
    assert "This token is unknown, expired or revoked" in answer.text
    assert 'aria-invalid="true"' in answer.text
    assert 'name="next" value="/actions"' in answer.text
    assert "set-cookie" not in answer.headers


def test_a_worker_may_not_sign_in(shared: Web, browse: Browse) -> None:
    form = {"token": shared.token(Role.WORKER)}
    answer = browse(shared, role=None).post("/sign-in", data=form)

    assert answer.status_code == 403
    assert "a token of the role worker opens no pages" in answer.text
    assert "set-cookie" not in answer.headers


def test_each_door_accepts_its_own_kind_alone(site: Web, browse: Browse) -> None:
    web, browser = site, browse(site)
    secret, token = browser.cookies["mb_session"], web.token()
    link = link_of(web).rpartition("/")[2]

    def api(text: str) -> int:
        header = {"Authorization": f"Bearer {text}"}
        return httpx.get(f"{web.url}/api/apps", headers=header).status_code

    def page(text: str) -> int:
        return httpx.get(f"{web.url}/account", cookies={"mb_session": text}).status_code

    def sign_in(text: str) -> int:
        return browser.post("/sign-in", data={"token": text}).status_code

    def by_link(text: str) -> int:
        return browser.post(f"/sign-in/{text}").status_code

    assert [api(one) for one in (secret, link, token)] == [401, 401, 200]
    assert [page(one) for one in (token, link, secret)] == [303, 303, 200]
    assert [sign_in(one) for one in (secret, link, token)] == [401, 401, 303]
    assert [by_link(one) for one in (secret, token, link)] == [401, 401, 303]
    # The prefix is no proof either.
    assert [api(f"mbt{one[3:]}") for one in (secret, link)] == [401, 401]
    # The API reads no cookie, so that no other site can use one.
    assert browser.get("/api/apps").status_code == 401


def cookie_at(web: Web, token: str, ends_at: datetime, key: str = "") -> str:
    """Return a cookie of a token that ends then, signed with its stored hash or another key."""
    id, ends = token.split("_")[1], str(int(ends_at.timestamp()))
    key = key or sha256(token.encode()).hexdigest()
    signed = hmac.new(key.encode(), f"cookie {id} {ends}".encode(), "sha256")
    return f"mbs_{id}_{ends}_{signed.hexdigest()}"


def opens(web: Web, cookie: str) -> bool:
    return httpx.get(f"{web.url}/account", cookies={"mb_session": cookie}).status_code == 200


def test_a_browser_is_signed_in_for_twelve_hours(web: Web, browse: Browse) -> None:
    token = web.token()
    ends = int(browse(web, token=token).cookies["mb_session"].split("_")[2])
    now = utc_now()

    assert abs(ends - (now + SIGNED_IN_FOR).timestamp()) < 60
    assert opens(web, cookie_at(web, token, now + timedelta(minutes=1)))
    assert not opens(web, cookie_at(web, token, now - timedelta(minutes=1)))


def test_a_cookie_that_was_changed_opens_nothing(web: Web, browse: Browse) -> None:
    other = web.token(Role.VIEWER)
    own = browse(web, token=other).cookies["mb_session"]
    _, id, ends, signature = own.split("_")
    admin = web.token().split("_")[1]

    changed = {
        "of_another_token": f"mbs_{admin}_{ends}_{signature}",
        "of_no_token": f"mbs_{'0' * 12}_{ends}_{signature}",
        "later": f"mbs_{id}_{int(ends) + 1}_{signature}",
        "signed_with_another_key": cookie_at(web, other, utc_now() + SIGNED_IN_FOR, "x"),
        "signed_with_the_token": cookie_at(web, other, utc_now() + SIGNED_IN_FOR, other),
        "without_a_signature": f"mbs_{id}_{ends}_",
        "more": f"{own}0",
        "no_cookie": "mbs_0_1_2",
    }

    assert opens(web, own)
    assert [name for name, cookie in changed.items() if opens(web, cookie)] == []


@pytest.mark.parametrize("end", ["revoked", "rotated", "expired"])
def test_a_cookie_ends_with_its_token(web: Web, browse: Browse, end: str) -> None:
    admin, token = browse(web), web.token(Role.EDITOR, expires="P1D")
    browser, id = browse(web, token=token), token.split("_")[1]

    if end == "revoked":
        done = admin.post(f"/tokens/{id}/revoke", data={"sure": "1"})
        assert (done.status_code, done.headers["location"]) == (303, "/invite")
    elif end == "rotated":
        tokens.rotate(web.opened, id)
    else:
        age(web, "expires_at IS NOT NULL AND kind = 'token'")

    assert answer_of(browser) == SIGNED_OUT
    assert answer_of(admin) == (200, None)


def test_signing_out_drops_the_cookie(web: Web, browse: Browse) -> None:
    browser = browse(web)

    answer = browser.post("/sign-out")

    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
    assert "mb_session" not in browser.cookies
    assert answer_of(browser) == SIGNED_OUT


def test_a_link_signs_in_once(web: Web, browse: Browse) -> None:
    link = link_of(web, Role.OPERATOR, APP)
    first, second = browse(web, role=None), browse(web, role=None)

    shown = [first.get(link) for _ in range(3)]
    answers = [one.post(link) for one in (first, second)]

    assert {one.status_code for one in shown} == {200}
    assert f'action="{link}"' in shown[0].text
    assert [one.status_code for one in answers] == [303, 401]
    assert "was used or has expired" in answers[1].text
    assert f"operator · {APP}" in first.get("/account").text
    assert answer_of(second) == SIGNED_OUT


def test_a_link_is_valid_for_an_hour(web: Web, browse: Browse) -> None:
    link = link_of(web)
    times = sa.select(stored.c.created_at, stored.c.expires_at)
    made, ends = fetched(web.engine, times.where(stored.c.kind == TokenKind.LINK)).one()
    age(web, "kind = 'link'")

    assert ends - made == sessions.LINK_LIFE
    assert browse(web, role=None).post(link).status_code == 401


def test_no_sign_in_leads_to_another_site(shared: Web, browse: Browse) -> None:
    browser, elsewhere = browse(shared, role=None), "//evil.example"
    form = browser.get("/sign-in", params={"next": elsewhere})

    signed_in = browser.post("/sign-in", data={"token": shared.token(), "next": elsewhere})
    again = browser.get("/sign-in", params={"next": elsewhere})

    assert 'name="next" value="/"' in form.text
    assert [signed_in.headers["location"], again.headers["location"]] == ["/", "/"]


def test_a_page_asks_to_sign_in_and_comes_back(site: Web, browse: Browse) -> None:
    browser = browse(site, role=None)
    open_page = {"HX-Request": "true", "HX-Current-URL": f"{site.url}/account?a=b"}

    page = browser.get("/account?page=2&q=a%26b")
    part = browser.get("/account?part=rows", headers=open_page)
    change = browser.post("/sign-out", headers={"Referer": f"{site.url}/account"})
    odd = browser.post("/sign-out", headers={"Referer": "http://[/"})

    assert page.status_code == 303
    assert page.headers["location"] == "/sign-in?next=/account%3Fpage%3D2%26q%3Da%2526b"
    assert (part.status_code, part.headers["hx-redirect"]) == (
        401, "/sign-in?next=/account%3Fa%3Db",
    )  # fmt: skip
    assert (change.status_code, change.headers["location"]) == SIGNED_OUT
    assert (odd.status_code, odd.headers["location"]) == (303, "/sign-in?next=/")


def test_a_form_that_is_too_large_is_refused(browser: httpx.Client) -> None:
    large = browser.post("/sign-out", data={"more": "x" * 2**20})
    many = browser.post("/sign-out", content="&".join(["a=b"] * 10_001))

    assert [large.status_code, many.status_code] == [413, 413]
    assert "larger than 1 MiB" in large.text


def test_a_revoked_link_signs_nobody_in_and_out_whom_it_did(web: Web, browse: Browse) -> None:
    links, browser = (link_of(web), link_of(web)), browse(web, role=None)
    browser.post(links[0])
    signed_in = answer_of(browser)

    for link in links:
        tokens.revoke(web.opened, link.split("_")[1])

    assert [signed_in, answer_of(browser)] == [(200, None), SIGNED_OUT]
    assert browse(web, role=None).post(links[1]).status_code == 401


def test_the_text_of_a_used_link_signs_no_cookie(web: Web, browse: Browse) -> None:
    link = link_of(web)
    text = link.rpartition("/")[2]
    browse(web, role=None).post(link)

    assert not opens(web, cookie_at(web, text, utc_now() + SIGNED_IN_FOR))


def test_changes_are_of_the_token_or_of_the_link(web: Web, browse: Browse) -> None:
    token, link = web.token(), link_of(web)
    by_token, by_link = browse(web, token=token), browse(web, role=None)
    by_link.post(link)

    for browser, verb in ((by_token, "pause"), (by_link, "resume")):
        assert browser.post(f"/apps/{APP}/{verb}").status_code == 303

    actors = fetched(web.engine, sa.text("SELECT actor FROM audit ORDER BY id DESC LIMIT 2"))
    last, first = actors.scalars()
    assert first == f"token {token.split('_')[1]}"
    assert last == f"link {link.split('_')[1]} (tests)"


def test_no_secret_is_stored(web: Web, browse: Browse) -> None:
    token, link = web.token(), link_of(web).rpartition("/")[2]
    cookie = browse(web, token=token).cookies["mb_session"]
    rows = fetched(web.engine, sa.text("SELECT * FROM tokens")).all()

    stored = " ".join(str(value) for row in rows for value in row)
    for secret in (cookie, token, link):
        assert secret.split("_", 2)[2] not in stored


def test_a_link_that_ended_long_ago_is_deleted_with_the_next(unserved: Web) -> None:
    made = (unserved.token(), link_of(unserved), link_of(unserved))
    token, kept, old = (one.split("_")[1] for one in made)
    for id, days in ((token, 31), (kept, 29), (old, 31)):
        past = sa.update(stored).where(stored.c.id == id)
        execute(unserved.engine, past.values(expires_at=database_now(-timedelta(days=days))))

    newest = link_of(unserved).split("_")[1]

    ids = set(fetched(unserved.engine, sa.select(stored.c.id)).scalars())
    assert ids == {token, kept, newest}


def test_an_error_of_a_page_is_a_page(site: Web, browse: Browse) -> None:
    browser = browse(site, Role.VIEWER, APP)

    page = browser.get("/account?app=default")
    part = browser.get("/account?app=default", headers={"HX-Request": "true"})

    assert (page.status_code, part.status_code) == (404, 404)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert "This page does not exist" in page.text
    # A known visitor keeps the frame of the page.
    assert "/sign-out" in page.text
    assert part.text.startswith('<p class="error"')


def test_files_are_kept_for_ever_under_their_version(site: Web, browse: Browse) -> None:
    browser = browse(site, role=None)
    page = browser.get("/sign-in").text
    paths = re.findall(r'(?:src|href)="(/static/[^"]+)"', page)

    answers = [browser.get(path) for path in paths]
    bare = browser.get(paths[0].partition("?")[0])

    assert {one.status_code for one in answers} == {200}
    assert {one.headers["cache-control"] for one in answers} == {
        "public, max-age=31536000, immutable"
    }
    assert bare.headers["cache-control"] == "no-cache"
    assert browser.get("/static/..%2ftexts.toml").status_code == 404
    assert browser.get("/static/none.js").status_code == 404


def age(web: Web, which: str) -> None:
    execute(web.engine, sa.text(f"UPDATE tokens SET expires_at = created_at WHERE {which}"))


def test_a_visitor_chooses_the_zone_of_times(browser: httpx.Client) -> None:
    chosen = browser.post("/zone", data={"zone": "Asia/Tokyo"})

    assert chosen.status_code == 303
    assert "Asia/Tokyo" in browser.get("/").text
