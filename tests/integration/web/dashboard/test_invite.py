"""The page that invites people: a token and a link for each, which an admin revokes."""

import re
from html import unescape

import httpx
import pytest
import sqlalchemy as sa

from models.roles import Role
from services.tokens import create, list_tokens
from tests.integration.web.conftest import APP, SiteWith, Web
from tests.integration.web.dashboard.conftest import Browse
from tests.transactions import fetched

ANN = {"name": "ann@example.com", "role": "operator", "app": "", "ends": "P30D"}


def shown(page: httpx.Response, what: str) -> str:
    """Return the link or the token that a page shows once."""
    found = re.search(rf'<code id="{what}"[^>]*>([^<]*)</code>', page.text)
    return unescape(found[1]) if found else ""


def path_of(link: str, web: Web) -> str:
    return link.removeprefix(web.url)


def test_an_invited_person_signs_in_by_the_link_and_then_by_the_token(
    web: Web, browse: Browse
) -> None:
    made = browse(web).post("/invite", data=ANN | {"app": APP})
    link, token = shown(made, "link"), shown(made, "token")
    ann, again = browse(web, role=None), browse(web, token=token)

    used = ann.post(path_of(link, web))
    account = ann.get("/account")

    assert (made.status_code, used.status_code) == (200, 303)
    assert f"operator · {APP}" in account.text
    assert f"operator · {APP}" in again.get("/account").text
    assert ann.get("/invite").status_code == 403
    verbs = fetched(web.engine, sa.text("SELECT verb FROM audit ORDER BY id DESC LIMIT 2"))
    assert list(verbs.scalars()) == ["link.create", "token.create"]


def test_the_page_lists_people_with_their_last_use(web: Web, browse: Browse) -> None:
    admin = browse(web)
    token = shown(admin.post("/invite", data=ANN), "token")
    row = re.compile(r'<span class="name">ann@example.com</span>.*?</tr>', re.S)
    before = row.findall(admin.get("/invite").text)
    browse(web, token=token)

    (after,) = row.findall(admin.get("/invite").text)

    assert len(before) == 1
    assert ">never</td>" in before[0]
    assert ">never</td>" not in after
    assert 'class="rel">in ' in after
    assert token not in admin.get("/invite").text


def test_revoking_ends_cookies_and_unused_links(web: Web, browse: Browse) -> None:
    admin = browse(web)
    made = admin.post("/invite", data=ANN)
    id = shown(made, "token").split("_")[1]
    ann, other = browse(web, role=None), browse(web, role=None)
    ann.post(path_of(shown(made, "link"), web))
    second = shown(admin.post(f"/tokens/{id}/link"), "link")

    asked = admin.post(f"/tokens/{id}/revoke")
    signed_in = ann.get("/account").status_code
    admin.post(f"/tokens/{id}/revoke", data={"sure": "1"})

    assert ("Revoke the token" in asked.text, signed_in) == (True, 200)
    assert ann.get("/account").status_code == 303
    assert other.post(path_of(second, web)).status_code == 401
    assert admin.post(f"/tokens/{id}/link").status_code == 404


def test_revoking_the_admin_leaves_whom_they_invited(web: Web, browse: Browse) -> None:
    token = create(web.opened, Role.ADMIN).token
    made = browse(web, token=token).post("/invite", data=ANN)
    ann = browse(web, token=shown(made, "token"))
    web.client().delete(f"/api/tokens/{token.split('_')[1]}")

    assert ann.get("/account").status_code == 200
    link = path_of(shown(made, "link"), web)
    assert browse(web, role=None).post(link).status_code == 303


def test_an_admin_of_a_small_app_invites_to_it_alone(site: Web, browse: Browse) -> None:
    create(site.opened, Role.VIEWER, None, "of the installation")
    admin = browse(site, Role.ADMIN, APP)

    refused = [admin.post("/invite", data=ANN | {"app": app}) for app in ("default", "nowhere")]
    made = [admin.post("/invite", data=ANN | {"app": app}) for app in ("", APP)]
    page = admin.get("/invite").text

    assert [one.status_code for one in refused] == [404, 404]
    of_shop = [one for one in list_tokens(site.opened, 10).items if one.name == ANN["name"]]
    assert [one.app for one in of_shop] == [APP, APP]
    assert all(shown(one, "token") for one in made)
    assert "of the installation" not in page
    assert "<option>default</option>" not in page


@pytest.mark.parametrize(
    ("asked", "status"),
    [({"name": ""}, 409), ({"ends": "soon"}, 409), ({"app": "nowhere"}, 404)],
    ids=["no_name", "no_span", "no_app"],
)
def test_what_cannot_be_invited_is_refused(
    site: Web, browser: httpx.Client, asked: dict[str, str], status: int
) -> None:
    answer = browser.post("/invite", data=ANN | asked)

    assert answer.status_code == status
    assert [one.name for one in list_tokens(site.opened, 10).items] == [None]


def test_a_worker_gets_no_link(site: Web, browse: Browse) -> None:
    id = create(site.opened, Role.WORKER).id
    admin = browse(site)

    assert f"/tokens/{id}/link" not in admin.get("/invite").text
    assert admin.post(f"/tokens/{id}/link").status_code == 409


def test_the_link_names_the_public_address(site_with: SiteWith, browse: Browse) -> None:
    web = site_with(web={"public_url": "https://minutebook.example.com"})

    link = shown(browse(web).post("/invite", data=ANN), "link")

    assert link.startswith("https://minutebook.example.com/sign-in/mbl_")
