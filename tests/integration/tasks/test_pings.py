"""`hooks.ping`: a monitor hears of a start, a success or a failure, by a request without a body."""

from typing import Any

import pytest
import sqlalchemy as sa

from models.action.allowed import problems_of_hooks
from models.action.hooks import HooksModel
from models.trust import RESTRICTED
from tests.integration.tasks.crew import Crew
from tests.receiver import Receiver
from tests.transactions import execute

ALL = ["start", "success", "failure"]
OVER = "over before it could be delivered"


def pinged(crew: Crew, *pings: dict[str, Any], **changes: Any) -> Any:
    """Store an action that pings; its starts are delivered while its step runs."""
    crew.during = crew.deliver
    return crew.make(hooks={"ping": list(pings)}, **changes)


def test_each_moment_has_its_url_and_no_body(crew: Crew, web: Receiver) -> None:
    action = pinged(
        crew,
        {"url": f"{web.url}/start", "at": ["start"]},
        {"url": f"{web.url}/check?a=1", "method": "POST"},
        {"url": f"{web.url}/fail", "at": ["failure"]},
    )

    for end in ("success", "failed", "partial"):
        crew.run(action, end)
        crew.deliver()

    assert [(got.method, got.path) for got in web.got] == [
        ("GET", "/start"), ("POST", "/check?a=1"),
        ("GET", "/start"), ("GET", "/fail"),
        ("GET", "/start"), ("GET", "/fail"),
    ]  # fmt: skip
    assert {got.body for got in web.got} == {b""}
    assert [got.headers.get("Content-Length") for got in web.got][:2] == [None, "0"]
    assert not [got for got in web.got if "Content-Type" in got.headers]


def test_a_run_that_is_retried_starts_once_and_fails_once(crew: Crew, web: Receiver) -> None:
    crew.error = "source is away"
    retry = {"retry": {"max_attempts": 2}}

    assert crew.ends(pinged(crew, {"url": web.url, "at": ALL}, policy=retry), 1, 2)[1] == "failed"
    assert [told for told, *_ in crew.states()] == ["start", "failure"]


def test_a_start_that_is_late_is_not_sent_after_the_end(crew: Crew, web: Receiver) -> None:
    crew.run(crew.make(hooks={"ping": [{"url": web.url, "at": ALL}]}))

    assert set(crew.states()) == {("start", "done", OVER), ("success", "owed", None)}


@pytest.mark.parametrize(("status", "outcome"), [(302, "put off"), (404, "failed")])
def test_what_a_monitor_did_not_take_shows_no_secret(
    crew: Crew, web: Receiver, status: int, outcome: str
) -> None:
    web.answers, web.headers = [status], {"Location": f"{web.url}/elsewhere"}
    crew.run(pinged(crew, {"url": f"{web.url}/s3cret"}))

    assert crew.deliver() == [outcome]
    assert [got.path for got in web.got] == ["/s3cret"]
    assert "s3cret" not in crew.error_told()


def test_a_restricted_app_pings_public_addresses_alone(crew: Crew, web: Receiver) -> None:
    crew.run(pinged(crew, {"url": web.url}))
    execute(crew.engine, sa.text("""UPDATE small_apps SET trust = '{}'"""))

    assert (crew.deliver(), web.got) == (["failed"], [])
    secret = HooksModel.model_validate({"ping": [{"url": "env:CHECK_URL"}]})
    (problem,) = problems_of_hooks(secret, RESTRICTED, None)
    assert problem.path == "hooks.ping[0].url"


def test_an_action_without_pings_owes_nothing_at_its_start(crew: Crew) -> None:
    crew.owe("https://example.com/hooks")

    assert [told for told, *_ in crew.states()] == ["success"]
