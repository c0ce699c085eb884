"""Notices to channels: chats and pagers by Apprise, for hooks and for alerts."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import apprise
import pytest
import sqlalchemy as sa

from broker.app import configure
from models.errors import InvalidDocument
from models.notices import NoticeKind, Target
from models.store.notices import Notice, findings
from models.store.notices.findings import Found
from runtime.config import InvalidSetting, load_settings
from tasks.notices import link_of
from tasks.notices.channel import with_incident
from tasks.outgoing.failures import Undelivered
from tests.celery_messages import allowing, celery_action
from tests.integration.tasks.crew import ANN, NOON, Crew, Tell
from tests.receiver import Receiver
from tests.ticks import MINUTE, run_tick
from tests.transactions import act, execute

CHANNEL = {"notify": "ops"}
FIRST = {**ANN, "when": "first"}


@pytest.fixture
def crew(crew: Crew, web: Receiver) -> Crew:
    """An installation with a channel `ops`."""
    crew.sets(SCHED_NOTIFY_OPS=web.url.replace("http://", "json://") + "/secret-path")
    return crew


def posted(web: Receiver) -> list[dict[str, Any]]:
    return [json.loads(one.body) for one in web.got]


def test_a_channel_hears_of_an_end_with_a_link(crew: Crew, web: Receiver) -> None:
    crew.sets(SCHED_WEB_PUBLIC_URL="https://minutebook.example.com/")

    id = crew.run(crew.make(hooks={"on_failure": [CHANNEL]}), "failed")
    assert crew.deliver() == ["done"]

    (said,) = posted(web)
    assert said["title"] == "[minutebook] FAILED: every minute"
    assert "source is away" in said["message"]
    assert f"https://minutebook.example.com/operations/{id}" in said["message"]
    assert said["type"] == "failure"


def test_a_hook_of_first_failures_hears_of_one_and_of_the_recovery(crew: Crew) -> None:
    action = crew.make(hooks={"on_failure": [FIRST], "alert_after": 2})

    crew.run(action, "success", "failed", "failed", "partial", "success", "success", "failed")

    assert [told for told, _ in crew.owed()] == ["failing", "failing over", "failing"]


def test_a_hook_of_first_failures_hears_when_a_task_is_handed_over_again(crew: Crew) -> None:
    configure(allowing(crew.settings, "shop.*"))
    action = celery_action(crew.engine, since=NOON - MINUTE, hooks={"on_failure": [FIRST]})
    run_tick(crew.engine, NOON)
    found = Found("action_failing", str(action.uid), "a", "b", action.uid)
    act(crew.engine, findings.begin, found)

    for minute in (1, 2):
        run_tick(crew.engine, NOON + minute * MINUTE)

    assert [told for told, _ in crew.owed()] == ["failing over"]


def test_alerts_for_all_actions_go_to_channels_too(crew: Crew, web: Receiver) -> None:
    crew.sets(SCHED_ALERT_NOTIFY="ops", SCHED_ALERT_AFTER="1")
    action = crew.make()

    for end in ("failed", "success"):
        crew.run(action, end)
        crew.deliver()

    assert [said["type"] for said in posted(web)] == ["failure", "success"]
    assert posted(web)[1]["title"].startswith("[minutebook] RESOLVED: every minute: failed")


def test_what_a_channel_refuses_is_tried_again_and_shows_no_secret(
    crew: Crew, web: Receiver
) -> None:
    web.answers = [500]
    crew.run(crew.make(hooks={"on_failure": [CHANNEL]}), "failed")

    assert crew.deliver() == ["put off"]
    assert "channel ops:" in crew.error_told()
    assert "secret-path" not in crew.error_told()


def test_a_channel_is_for_trusted_small_apps(crew: Crew) -> None:
    crew.run(crew.make(hooks={"on_failure": [CHANNEL]}), "failed")
    execute(crew.engine, sa.text("""UPDATE small_apps SET trust = '{}'"""))

    assert crew.deliver() == ["failed"]
    assert "--trusted" in crew.error_told()


def test_an_unknown_channel_is_refused_when_it_is_saved(crew: Crew) -> None:
    with pytest.raises(InvalidDocument) as refused:
        crew.make(hooks={"on_failure": [CHANNEL, {"notify": "opps"}]})

    (problem,) = refused.value.problems
    assert (problem.path, problem.value) == ("hooks.on_failure[1].notify", "opps")
    assert "is not among the channels of this installation (ops)" in problem.remedy


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
    tmp_path: Path, variables: dict[str, str], says: str
) -> None:
    with pytest.raises(InvalidSetting) as refused:
        load_settings(tmp_path, variables)

    assert says in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("url", ["slack://hunter2", "nope://hunter2", "json://127.0.0.1:1/hunter2"])
def test_neither_an_error_nor_a_log_shows_a_channel_s_url(
    tell: Tell, caplog: pytest.LogCaptureFixture, url: str
) -> None:
    caplog.set_level("DEBUG")

    with pytest.raises(Undelivered) as refused:
        tell(url, allow_private=False)

    said = [str(refused.value), *caplog.messages]
    assert not [one for one in said if "hunter2" in one or "127.0.0.1" in one]


def test_a_text_is_no_markup(tell: Tell, web: Receiver) -> None:
    tell(f"{web.url}?format=html", text="a < b\nand more")

    assert posted(web)[0]["message"] == "a&nbsp;&lt;&nbsp;b<br/>and&nbsp;more"


def test_a_link_to_an_action_can_be_followed_whatever_its_small_app_is_called() -> None:
    told = {"small_app": "R&D #1 / Köln?", "action_uid": "7"}
    notice = Notice(UUID(int=1), 1, NoticeKind.RUN_ENDED, Target("notify", "ops"), told, NOON)

    assert link_of(notice, "https://m.example.com/sub") == {
        "url": "https://m.example.com/sub/apps/R%26D%20%231%20%2F%20K%C3%B6ln%3F/actions/7"
    }
