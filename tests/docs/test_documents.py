"""Every document of the pages is one, and the reference has each key of actions and small apps."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from data.steps.publish import PublishParameters
from data.steps.refresh import RefreshParameters
from models.action.document import ParseContext, ScheduledActionModel, parse_action
from models.action.hooks import HooksModel
from models.action.policy import PolicyModel, RetryModel
from models.action.recipients import RecipientFilterModel
from models.action.when import KINDS
from models.celery_task import CeleryRules
from models.problems import known_keys
from models.tenant.document import parse_small_app, small_app_model
from models.users import parse_users
from runtime.sections import AlertSettings
from services.jobs.documents import new_job
from tasks.steps.celery_task import CeleryTaskParameters
from tasks.steps.command import CommandParameters
from tasks.steps.job import JobParameters
from tests.docs.pages import pages_of, text_of
from tests.factories import STEPS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "docs" / "tutorial.md", *(ROOT / "docs/how-to").rglob("*.md")]
REFERENCE = pages_of("reference/action")
JSON = re.compile(r"```json\n(.*?)```", re.S)
BLOCKS: list[Any] = [
    pytest.param(json.loads(block), id=f"{page.relative_to(ROOT)}-{number}")
    for page in (*PAGES, *REFERENCE)
    for number, block in enumerate(JSON.findall(page.read_text(encoding="utf-8")), 1)
]
TEXT = text_of("reference/action")
SMALL_APP = text_of("reference/small-app")
REWRITTEN = re.findall(
    r"^\| \w.+? \| `.+?` \| `(\{.+\})` \|$", text_of("how-to/move-from-others"), re.M
)
CONTEXT = ParseContext(
    "Europe/Paris",
    datetime(2026, 11, 21, tzinfo=UTC),
    celery=CeleryRules(("tasks.*", "shop.*")),
    commands=("/srv/*(STAGE)",),
    steps=STEPS,
    channels=("ops", "pager"),
    # The tutorial lets the daemon tick so often.
    tick=timedelta(seconds=5),
    calendars={"french holidays": ["12-25"], "freeze": []},
)
DULL = {"name": "dull", "operations": {"maintenance": True}, "when": {"cron_rule": "@daily"}}
MODELS = [
    ScheduledActionModel, RefreshParameters, PublishParameters, CeleryTaskParameters, JobParameters,
    CommandParameters, RecipientFilterModel, PolicyModel, RetryModel, HooksModel, *KINDS.values(),
]  # fmt: skip


@pytest.mark.parametrize("document", BLOCKS)
def test_each_document_can_be_saved(document: Any) -> None:
    if isinstance(document, list) and "url" in document[0]:
        assert all(map(new_job, document))
    elif isinstance(document, list) and "operations" in document[0]:
        assert all(parse_action(one, CONTEXT) for one in document)
    elif isinstance(document, list):
        assert parse_users(document)
    elif "domains" in document:
        assert parse_small_app(document)
    elif document.keys() <= STEPS.keys():
        assert parse_action({**DULL, "operations": document}, CONTEXT)
    elif set(document.get("operations", {})) <= set(STEPS):
        assert parse_action({**DULL, **document}, CONTEXT)
    else:
        assert document["operations"].keys() == {"count_files"}, "a step that a page registers"


def test_each_key_has_a_row_and_each_row_is_a_key() -> None:
    rows = re.findall(r"^\| `([a-z_]+)` \|", SMALL_APP, re.M)

    assert sorted(rows) == sorted(known_keys(small_app_model()))


@pytest.mark.parametrize("block", re.findall(r"```yaml\n(.*?)```", SMALL_APP, re.S))
def test_each_example_is_a_valid_document(block: str) -> None:
    document = yaml.safe_load(block)
    for user in document.get("users", []):
        user["activated_at"] = user["activated_at"].isoformat()

    assert parse_small_app(document).name == "shop"


@pytest.mark.parametrize("ours", REWRITTEN)
def test_each_rewritten_rule_is_accepted(ours: str) -> None:
    assert parse_action({**DULL, "when": json.loads(ours)}, CONTEXT)


def test_the_rewritten_rules_are_found() -> None:
    assert len(REWRITTEN) == 10


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_each_key_is_on_a_page(model: type[BaseModel]) -> None:
    prose = re.sub(r"```.*?```", "", TEXT, flags=re.S)
    shown = set(re.findall(r"[a-z_]+", " ".join(re.findall(r"`[^`\n]+`", prose))))
    shown |= set(re.findall(r'"([a-z_]+)":', " ".join(JSON.findall(TEXT))))

    assert set(known_keys(model)) <= shown


def test_each_step_is_on_a_page() -> None:
    assert all(f"`{name}`" in TEXT or f'"{name}"' in TEXT for name in STEPS)


def test_the_defaults_on_the_pages_are_those_of_the_models() -> None:
    rows = dict(re.findall(r"^\| `([a-z_.]+)` \|.*\| (.*) \|$", TEXT, re.M))
    policy = PolicyModel().model_dump(mode="json")

    true = {name: policy[name] for name in ("catch_up", "overlap", "max_waiting")}
    true |= {f"retry.{name}": policy["retry"][name] for name in ("max_attempts", "backoff")}
    true["alert_after"] = AlertSettings().after
    assert {name: json.loads(rows[name].strip("`")) for name in true} == true


def test_the_errors_on_the_pages_are_the_real_ones() -> None:
    document = {
        "name": "a",
        "operations": {"publsh": True},
        "when": {"cron_rule": "0 7 * * 1", "timezone": "Europe/Pariss"},
        "policy": {"retry": {"backoff": ["PT1M", "PT1M", "P1M"]}},
    }
    with pytest.raises(Exception, match="Pariss") as refused:
        parse_action(document, CONTEXT)

    (shown,) = re.findall(r"```text\n(.*?)```", TEXT, re.S)
    assert sorted(shown.splitlines()) == sorted(str(refused.value).splitlines())
