"""Who may see the pages: sign-in, sessions, links, and what other sites cannot do."""

import re

from models.roles import Role
from tests.integration.web.conftest import Web
from tests.integration.web.dashboard.conftest import Browse


def test_a_token_opens_a_session_that_only_the_server_can_read(
    web_on_sqlite: Web, browse: Browse
) -> None:
    browser = browse(web_on_sqlite, role=None)
    secret = web_on_sqlite.token()

    answer = browser.post("/sign-in", data={"token": f" {secret}\n", "next": "/actions?state=on"})

    assert (answer.status_code, answer.headers["location"]) == (303, "/actions?state=on")
    cookie = answer.headers["set-cookie"]
    assert re.fullmatch(
        r"mh_session=mhs_[0-9a-f]{12}_[\w-]{43}; HttpOnly; Max-Age=43200; Path=/; SameSite=lax",
        cookie,
    )
    assert browser.get("/sign-in?next=/health").headers["location"] == "/health"


def test_a_wrong_token_is_said_beside_the_field(web_on_sqlite: Web, browse: Browse) -> None:
    browser = browse(web_on_sqlite, role=None)

    answer = browser.post("/sign-in", data={"token": "mht_0_x", "next": "/actions"})

    assert answer.status_code == 401
    assert "This token is unknown, expired or revoked" in answer.text
    assert 'aria-invalid="true"' in answer.text
    assert 'name="next" value="/actions"' in answer.text
    assert "set-cookie" not in answer.headers


def test_a_worker_may_not_sign_in(web_on_sqlite: Web, browse: Browse) -> None:
    browser = browse(web_on_sqlite, role=None)

    answer = browser.post("/sign-in", data={"token": web_on_sqlite.token(Role.WORKER)})

    assert answer.status_code == 403
    assert "a token of the role worker opens no pages" in answer.text
    assert "set-cookie" not in answer.headers
