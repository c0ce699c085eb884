"""Notices to channels: chats and pagers by Apprise, for hooks and for alerts."""

import json
import logging
from collections.abc import Iterator
from datetime import timedelta
from logging.handlers import BufferingHandler
from typing import Any
from uuid import UUID

import apprise
import pytest
import sqlalchemy as sa
from pydantic import SecretStr

from broker.app import configure
from models.errors import InvalidDocument, NotFound, Refused
from models.notices import NoticeKind, Target
from models.store.notices import Notice, findings
from models.store.notices.alerting import NO_ALERTS
from models.store.notices.findings import Found
from runtime.config import InvalidSetting, Settings, load_settings
from scheduler.changes.change import create_all
from scheduler.sweep import Sweeper
from scheduler.tick import tick
from services import channels
from tasks.notices import link_of
from tasks.notices.channel import send, with_incident
from tasks.outgoing.failures import Undelivered
from tasks.outgoing.mail.message import Content
from tests.celery_messages import allowing, celery_action
from tests.factories import author, installation_on, make_document
from tests.integration.tasks.crew import NOON, Crew
from tests.receiver import Receiver, receiver
from tests.told import told_as

pytestmark = pytest.mark.usefixtures("own_steps")
OPS = {"notify": "ops"}


@pytest.fixture
def chat() -> Iterator[Receiver]:
    """A server that takes what Apprise posts."""
    with receiver() as found:
        yield found


@pytest.fixture
def crew(engine: sa.Engine, settings: Settings, chat: Receiver) -> Crew:
    return Crew(engine, named(settings, chat))


def named(settings: Settings, chat: Receiver, **variables: str) -> Settings:
    """Return settings with a channel `ops`, given as a deployment gives them."""
    url = chat.url.replace("http://", "json://") + "/secret-path"
    here = {"SCHED_NOTIFY_OPS": url, "SCHED_HOOK_ALLOW_PRIVATE": "true"}
    found = load_settings(settings.home, here | variables)
    changes = {key: getattr(found, key) for key in ("notify", "alert", "web", "hook")}
    return settings.model_copy(update=changes)


def posted(chat: Receiver) -> list[dict[str, Any]]:
    return [json.loads(one.body) for one in chat.got]


def make(crew: Crew, **hooks: Any) -> Any:
    document = make_document(operations={"told": True}, hooks=hooks)
    its = author(crew.registry.steps, channels=("ops",))
    return create_all(crew.engine, [document], its)[0]


def test_a_channel_hears_of_an_end_with_a_link(crew: Crew, chat: Receiver) -> None:
    web = {"SCHED_WEB_PUBLIC_URL": "https://minutebook.example.com/"}
    crew.settings = named(crew.settings, chat, **web)

    id = crew.run(make(crew, on_failure=[OPS]), "failed")
    assert crew.deliver() == ["done"]

    (said,) = posted(chat)
    assert said["title"] == "[minutebook] FAILED: every minute"
    assert "source is away" in said["message"]
    assert f"https://minutebook.example.com/operations/{id}" in said["message"]
    assert said["type"] == "failure"


def test_a_hook_of_first_failures_hears_of_one_and_of_the_recovery(
    crew: Crew, chat: Receiver
) -> None:
    action = make(crew, on_failure=[{**OPS, "when": "first"}], alert_after=2)

    for end in ("success", "failed", "failed", "partial", "success", "success", "failed"):
        crew.run(action, end)
    crew.deliver()

    assert [said["type"] for said in posted(chat)] == ["failure", "success", "failure"]
    _, over, _ = posted(chat)
    assert over["title"] == "[minutebook] RESOLVED: every minute: failed"


def test_a_failure_that_is_delivered_late_does_not_follow_the_recovery(
    crew: Crew, chat: Receiver
) -> None:
    action = make(crew, on_failure=[{**OPS, "when": "first"}, {"mail": "ann@example.com"}])
    chat.answers = [503]

    crew.run(action, "failed")
    crew.deliver()
    crew.run(action, "success")
    crew.deliver()

    # Else a pager would open an incident again that nothing closes.
    assert [said["type"] for said in posted(chat)] == ["failure", "success"]
    failures = {row["target"]["to"]: row for row in crew.rows() if "over" not in told_as(row)}
    assert failures["ops"]["error"] == "over before it could be delivered"
    assert failures["ann@example.com"]["error"] is None


def test_a_hook_of_first_failures_hears_when_a_task_is_handed_over_again(
    crew: Crew, engine: sa.Engine
) -> None:
    configure(allowing(crew.settings, "shop.*"))
    first = [{"mail": "ann@example.com", "when": "first"}]
    action = celery_action(engine, since=NOON - timedelta(minutes=1), hooks={"on_failure": first})
    sweeper = Sweeper(timedelta(seconds=45), NO_ALERTS)
    tick(engine, NOON, sweeper)
    with engine.begin() as connection:
        findings.begin(connection, Found("action_failing", str(action.uid), "a", "b", action.uid))

    for minute in (1, 2):
        tick(engine, NOON + timedelta(minutes=minute), sweeper)

    assert [told_as(row) for row in crew.rows()] == ["failing over"]


def test_alerts_for_all_actions_go_to_channels_too(crew: Crew, chat: Receiver) -> None:
    crew.settings = named(crew.settings, chat, SCHED_ALERT_NOTIFY="ops", SCHED_ALERT_AFTER="1")
    action = make(crew)

    for end in ("failed", "success"):
        crew.run(action, end)
        crew.deliver()

    assert [said["type"] for said in posted(chat)] == ["failure", "success"]


def test_what_a_channel_refuses_is_tried_again_and_shows_no_secret(
    crew: Crew, chat: Receiver
) -> None:
    chat.answers = [500]
    crew.run(make(crew, on_failure=[OPS]), "failed")

    assert crew.deliver() == ["put off"]
    (row,) = crew.rows()
    assert "channel ops:" in row["error"]
    assert "secret-path" not in row["error"]
    assert crew.deliver() == ["done"]


def test_a_channel_is_for_trusted_small_apps(crew: Crew, engine: sa.Engine) -> None:
    crew.run(make(crew, on_failure=[OPS]), "failed")
    with engine.begin() as connection:
        connection.execute(sa.text("""UPDATE small_apps SET trust = '{}'"""))

    assert crew.deliver() == ["failed"]
    assert "--trusted" in crew.rows()[0]["error"]


def test_an_unknown_channel_is_refused_when_it_is_saved(crew: Crew) -> None:
    with pytest.raises(InvalidDocument) as refused:
        make(crew, on_failure=[OPS, {"notify": "opps"}])

    (problem,) = refused.value.problems
    assert (problem.path, problem.value) == ("hooks.on_failure[1].notify", "opps")
    assert "is not among the channels of this installation (ops)" in problem.remedy


@pytest.mark.parametrize(
    ("hooks", "path"),
    [
        ({"on_success": [{**OPS, "when": "first"}]}, "hooks.on_success[0].when"),
        ({"on_missed": [{**OPS, "when": "first"}]}, "hooks.on_missed[0].when"),
        ({"on_failure": [{**OPS, "when": "second"}]}, "hooks.on_failure[0].when"),
        ({"on_failure": [{**OPS, "mail": "ann@example.com"}]}, "hooks.on_failure[0]"),
        ({"on_failure": ["ops"]}, "hooks.on_failure[0]"),
    ],
)
def test_a_wrong_hook_is_refused_at_its_place(crew: Crew, hooks: Any, path: str) -> None:
    with pytest.raises(InvalidDocument) as refused:
        make(crew, **hooks)

    assert [one.path for one in refused.value.problems] == [path]


def test_a_channel_is_tested_by_its_name(
    engine: sa.Engine, settings: Settings, chat: Receiver
) -> None:
    installation = installation_on(engine, named(settings, chat))

    assert [one.name for one in channels.list_all(installation).root] == ["ops"]
    assert channels.test(installation, "ops").name == "ops"
    assert posted(chat)[0]["title"] == channels.TITLE
    with pytest.raises(NotFound, match="SCHED_NOTIFY_PAGER"):
        channels.test(installation, "pager")
    chat.answers = [404]
    with pytest.raises(Refused, match="channel ops: "):
        channels.test(installation, "ops")


@pytest.mark.parametrize(
    ("url", "keys"),
    [
        ("pagerduty://key@routing", {"dedup": "minutebook-1", "action": "map"}),
        ("pagerduty://key@routing?dedup=own", {"dedup": "own"}),
        ("opsgenie://key", {"action": "map"}),
    ],
)
def test_a_pager_opens_and_closes_one_incident_for_an_action(
    url: str, keys: dict[str, str]
) -> None:
    service: Any = apprise.Apprise.instantiate(with_incident(url, "minutebook-1"))

    assert {key: getattr(service, key) for key in keys} == keys


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"SCHED_NOTIFY_OPS": "T1/B2/secret"}, "SCHED_NOTIFY_OPS: ops: write a URL of Apprise"),
        ({"SCHED_ALERT_NOTIFY": "ops"}, "alert.notify names 'ops'; set SCHED_NOTIFY_OPS too"),
    ],
)
def test_a_wrong_channel_names_its_variable_and_no_secret(
    settings: Settings, variables: dict[str, str], says: str
) -> None:
    with pytest.raises(InvalidSetting) as refused:
        load_settings(settings.home, variables)

    assert says in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_service_that_answers_byte_by_byte_holds_a_worker_no_longer_than_a_webhook_does(
    crew: Crew, chat: Receiver
) -> None:
    chat.trickle_s = 0.2
    hook = crew.settings.hook.model_copy(update={"timeout_s": 1.0})
    crew.settings = crew.settings.model_copy(update={"hook": hook})
    crew.run(make(crew, on_failure=[OPS]), "failed")

    assert crew.deliver() == ["put off"]
    assert crew.rows()[0]["error"] == (
        "channel ops takes longer than SCHED_HOOK_TIMEOUT_S=1; "
        "check its service, or raise SCHED_HOOK_TIMEOUT_S"
    )


@pytest.mark.parametrize(
    "url", ["slack://hunter2", "discord://hunter2/", "nope://hunter2", "json://127.0.0.1:1/hunter2"]
)
def test_neither_an_error_nor_a_log_shows_a_channel_s_url(settings: Settings, url: str) -> None:
    its = settings.model_copy(update={"notify": {"ops": SecretStr(url)}})
    root, kept = logging.getLogger(), BufferingHandler(1_000)
    root.addHandler(kept)
    level = root.level
    root.setLevel(logging.DEBUG)
    try:
        with pytest.raises(Undelivered) as refused:
            send("ops", Content("a title", "a text"), "minutebook-1", its, is_good=True)
    finally:
        root.removeHandler(kept)
        root.setLevel(level)

    said = [str(refused.value), *(one.getMessage() for one in kept.buffer)]
    assert not [one for one in said if "hunter2" in one or "127.0.0.1" in one]


def test_a_text_is_no_markup(settings: Settings, chat: Receiver) -> None:
    url = SecretStr(chat.url.replace("http://", "json://") + "?format=html")
    hook = settings.hook.model_copy(update={"allow_private": True})
    its = settings.model_copy(update={"notify": {"ops": url}, "hook": hook})

    send("ops", Content("a title", "a < b\nand more"), "minutebook-1", its, is_good=True)

    assert posted(chat)[0]["message"] == "a&nbsp;&lt;&nbsp;b<br/>and&nbsp;more"


def test_a_link_to_an_action_can_be_followed_whatever_its_small_app_is_called() -> None:
    told = {"small_app": "R&D #1 / Köln?", "action_uid": "7"}
    notice = Notice(UUID(int=1), 1, NoticeKind.RUN_ENDED, Target("notify", "ops"), told, NOON)

    assert link_of(notice, "https://m.example.com/sub") == {
        "url": "https://m.example.com/sub/apps/R%26D%20%231%20%2F%20K%C3%B6ln%3F/actions/7"
    }
