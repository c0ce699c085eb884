"""`hooks.ping`: a monitor hears of a start, a success or a failure, by a request without a body."""

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from models.action.allowed import problems_of_hooks
from models.action.hooks import HooksModel
from models.trust import RESTRICTED
from runtime.config import Settings
from tests.integration.tasks.crew import Crew
from tests.receiver import Receiver, receiver
from tests.told import told_as

pytestmark = pytest.mark.usefixtures("own_steps")
ALL = ["start", "success", "failure"]


@pytest.fixture
def monitor() -> Iterator[Receiver]:
    with receiver() as found:
        yield found


@pytest.fixture
def crew(engine: sa.Engine, settings: Settings) -> Crew:
    hook = settings.hook.model_copy(update={"allow_private": True})
    return Crew(engine, settings.model_copy(update={"hook": hook}))


def pinged(crew: Crew, *pings: dict[str, Any], **changes: Any) -> Any:
    """Store an action that pings; its starts are delivered while its step runs."""
    crew.during = crew.deliver
    return crew.make(hooks={"ping": list(pings)}, **changes)


def test_each_moment_has_its_url_and_no_body(crew: Crew, monitor: Receiver) -> None:
    action = pinged(
        crew,
        {"url": f"{monitor.url}/start", "at": ["start"]},
        {"url": f"{monitor.url}/check?a=1", "method": "POST"},
        {"url": f"{monitor.url}/fail", "at": ["failure"]},
    )

    for end in ("success", "failed", "partial"):
        crew.run(action, end)
        crew.deliver()

    assert [(got.method, got.path) for got in monitor.got] == [
        ("GET", "/start"), ("POST", "/check?a=1"),
        ("GET", "/start"), ("GET", "/fail"),
        ("GET", "/start"), ("GET", "/fail"),
    ]  # fmt: skip
    assert {got.body for got in monitor.got} == {b""}
    assert [got.headers.get("Content-Length") for got in monitor.got][:2] == [None, "0"]
    assert not [got for got in monitor.got if "Content-Type" in got.headers]


def test_a_run_that_is_retried_starts_once_and_fails_once(crew: Crew, monitor: Receiver) -> None:
    retry = {"retry": {"max_attempts": 2}}
    action = pinged(crew, {"url": monitor.url, "at": ALL}, policy=retry)

    crew.run(action, "pending")
    crew.deliver()

    assert [told_as(row) for row in crew.rows()] == ["start"]


def test_a_start_that_is_late_is_not_sent_after_the_end(crew: Crew, monitor: Receiver) -> None:
    action = crew.make(hooks={"ping": [{"url": monitor.url, "at": ALL}]})

    crew.run(action)

    assert {told_as(row): row["state"] for row in crew.rows()} == {
        "start": "done",
        "success": "owed",
    }
    assert [row["error"] for row in crew.rows() if told_as(row) == "start"] == [
        "over before it could be delivered"
    ]


@pytest.mark.parametrize(
    ("status", "outcome"), [(302, "put off"), (404, "failed"), (500, "put off")]
)
def test_what_a_monitor_did_not_take_shows_no_secret(
    crew: Crew, monitor: Receiver, status: int, outcome: str
) -> None:
    monitor.answers, monitor.headers = [status], {"Location": f"{monitor.url}/elsewhere"}
    crew.run(pinged(crew, {"url": f"{monitor.url}/s3cret"}))

    assert crew.deliver() == [outcome]
    assert [got.path for got in monitor.got] == ["/s3cret"]
    assert "s3cret" not in str(crew.rows()[0]["error"])


def test_a_reference_is_resolved_when_it_is_sent(
    crew: Crew, monitor: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHECK_URL", f"{monitor.url}/s3cret")
    secrets = crew.settings.secrets.model_copy(update={"env": ("CHECK_URL",)})
    crew.settings = crew.settings.model_copy(update={"secrets": secrets})
    crew.run(pinged(crew, {"url": "env:CHECK_URL"}))

    assert crew.deliver() == ["done"]
    assert [got.path for got in monitor.got] == ["/s3cret"]
    assert "s3cret" not in str(crew.rows())


def test_a_restricted_app_pings_public_addresses_alone(
    crew: Crew, engine: sa.Engine, monitor: Receiver
) -> None:
    crew.run(pinged(crew, {"url": monitor.url}))
    with engine.begin() as connection:
        connection.execute(sa.text("""UPDATE small_apps SET trust = '{}'"""))

    assert crew.deliver() == ["failed"]
    assert monitor.got == []
    secret = HooksModel.model_validate({"ping": [{"url": "env:CHECK_URL"}]})
    assert [one.path for one in problems_of_hooks(secret, RESTRICTED, None)] == [
        "hooks.ping[0].url"
    ]


def test_an_action_without_pings_owes_nothing_at_its_start(crew: Crew) -> None:
    crew.run(crew.make(hooks={"on_success": [{"webhook": "https://example.com/hooks"}]}))

    assert [told_as(row) for row in crew.rows()] == ["success"]
