"""What pages hold and refuse, in words of the page: the status, what is there, and what is not."""

import re
from html import unescape

import httpx
import pytest

from models.roles import Role
from services.runs import run
from tests.integration.web.conftest import APP, Web
from tests.integration.web.dashboard.conftest import Browse
from tests.integration.web.test_overview import names

ACTION = f"/apps/{APP}/actions/nightly"
BACKWARDS = "from=2026-07-02T00:00&to=2026-07-01T00:00"
WRONG = '{"name": "x", "when": {"cron_rule": "61 * * * *"}}'
UNKNOWN = {"verb": "x"}


@pytest.fixture
def site(shared: Web) -> Web:
    """No test changes anything."""
    return shared


@pytest.mark.parametrize(
    ("path", "status", "holds"),
    [
        pytest.param("/health", 200, (" in the home folder, ", "<dt>database</dt>"), id="disk"),
        pytest.param("/nothing", 404, ("Nothing is at this address.", "/actions"), id="nothing"),
        pytest.param(
            f"/apps/{APP}/actions/none",
            404,
            ("look for it among the actions", "/actions"),
            id="no_action",
        ),
        pytest.param(f"{ACTION}?at=soon", 200, ("'soon': is not an instant",), id="no_instant"),
        pytest.param(f"{ACTION}?{BACKWARDS}", 200, ("the range begins at",), id="no_range"),
        pytest.param(f"{ACTION}?before=x", 422, (), id="no_revision"),
        pytest.param(f"{ACTION}/edit?revision=9", 404, (), id="unknown_revision"),
        pytest.param(f"/apps/{APP}/store", 200, ("<h1>New action</h1>",), id="store"),
        pytest.param("/operations?state=foo", 422, ("query.state[0] 'foo'",), id="state"),
        pytest.param("/actions?standing=foo", 422, ("query.standing 'foo'",), id="standing"),
    ],
)
def test_a_page_says_in_its_words_what_it_has(
    browser: httpx.Client, path: str, status: int, holds: tuple[str, ...]
) -> None:
    answer = browser.get(path)

    text = unescape(answer.text)
    assert (answer.status_code, [one for one in holds if one not in text]) == (status, [])
    assert not [one for one in ("`minutebook", "--from") if one in text]


@pytest.mark.parametrize(
    ("path", "form", "status", "holds"),
    [
        pytest.param("/actions", UNKNOWN, 409, (), id="unknown_for_many"),
        pytest.param(f"{ACTION}/x", {}, 404, (), id="unknown"),
        pytest.param("/operations/x/x", {}, 404, (), id="unknown_for_a_run"),
        pytest.param("/actions", {"verb": "pause", "all": "1"}, 409, ("Nothing is selected.",),
                     id="no_actions"),
        pytest.param("/operations", {"verb": "retry", "all": "1"}, 409, ("Nothing is selected.",),
                     id="no_runs"),
        pytest.param(f"/apps/{APP}/store", {"document": WRONG}, 422,
                     ("is above 59", "61 * * * *"), id="faulty_document"),
        pytest.param(f"/apps/{APP}/store", {"document": "{oops"}, 422, ("{oops",), id="no_json"),
        pytest.param(f"/apps/{APP}/templates/hello/send-test", {"to": "ann"}, 409,
                     ("'ann' is not an e-mail address",), id="no_address"),
        pytest.param("/zone", {"zone": "Nowhere"}, 409, ("o time zone is named Nowhere",),
                     id="no_zone"),
    ],
)  # fmt: skip
def test_a_change_that_cannot_be_made_is_refused_in_words_of_the_page(
    browser: httpx.Client, site: Web, path: str, form: dict[str, str], status: int,
    holds: tuple[str, ...],
) -> None:  # fmt: skip
    answer = browser.post(path, data=form)

    text = unescape(answer.text)
    assert (answer.status_code, [one for one in holds if one not in text]) == (status, [])
    # But in the example of a command.
    assert "--" not in text.partition("<main")[2].replace("backup.sh --full", "")
    assert names(site.client()) == ["maintenance", "nightly"]


def test_a_stranger_sees_an_error_without_the_navigation(site: Web, browse: Browse) -> None:
    assert "<nav" not in browse(site, role=None).get("/nothing").text


def test_a_viewer_sees_no_button_that_changes(site: Web, browse: Browse) -> None:
    run(site.shop, "nightly")
    viewer, operator = (browse(site, role, APP) for role in (Role.VIEWER, Role.OPERATOR))
    button = re.compile(r"<button[^>]*>(?:<svg.*?</svg>)?\s*(Run now|Pause|Retry|Cancel)\s*<", re.S)

    def buttons(browser: httpx.Client, path: str) -> set[str]:
        return set(button.findall(browser.get(path).text))

    paths = ("/", "/actions", ACTION, "/operations")
    assert [buttons(viewer, one) for one in paths] == [set()] * 4
    assert {"Run now", "Pause"} <= buttons(operator, ACTION)
    assert "Pause" in buttons(operator, "/actions")
    assert {"Retry", "Cancel"} <= buttons(operator, "/operations")
