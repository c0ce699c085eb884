"""docs/reference/action: every key of an action, with its default; each example is one."""

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel

from data.steps.publish import PublishParameters
from data.steps.refresh import RefreshParameters
from models.action.document import ParseContext, ScheduledActionModel, parse_action, plan_of
from models.action.hooks import HooksModel
from models.action.policy import PolicyModel, RetryModel
from models.action.recipients import RecipientFilterModel
from models.action.when import KINDS
from models.celery_task import CeleryRules
from models.problems import known_keys
from runtime.sections import AlertSettings
from tasks.steps.celery_task import CeleryTaskParameters
from tasks.steps.command import CommandParameters
from tasks.steps.job import JobParameters
from tests.docs.pages import text_of
from tests.factories import STEPS

TEXT = text_of("reference/action")
EXAMPLES: list[Any] = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", TEXT, re.S)]
ACTIONS = [example for example in EXAMPLES if {"name", "operations"} <= example.keys()]
CONTEXT = ParseContext(
    "Europe/Paris",
    datetime(2026, 11, 21, tzinfo=UTC),
    celery=CeleryRules(("shop.*",)),
    steps=STEPS,
    commands=("/srv/*(STAGE)",),
)
MODELS = [
    ScheduledActionModel, RefreshParameters, PublishParameters, CeleryTaskParameters, JobParameters,
    CommandParameters, RecipientFilterModel, PolicyModel, RetryModel, HooksModel, *KINDS.values(),
]  # fmt: skip


@pytest.mark.parametrize("document", ACTIONS, ids=lambda document: document["name"])
def test_each_complete_example_is_a_valid_action(document: object) -> None:
    assert plan_of(parse_action(document, CONTEXT)).rules


def test_each_fragment_follows_the_grammar() -> None:
    fragments = [example for example in EXAMPLES if example not in ACTIONS]

    for fragment in fragments:
        ((key, value),) = fragment.items()
        assert STEPS[key].parameters.model_validate(value)
    assert len(fragments) == 2


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_each_key_is_on_a_page(model: type[BaseModel]) -> None:
    prose = re.sub(r"```.*?```", "", TEXT, flags=re.S)
    shown = set(re.findall(r"[a-z_]+", " ".join(re.findall(r"`[^`\n]+`", prose))))
    fragments = [value for example in EXAMPLES for value in example.values()]
    shown |= {key for value in fragments if isinstance(value, dict) for key in value}

    assert set(known_keys(model)) <= shown


def test_each_step_is_on_a_page() -> None:
    assert all(f"`{name}`" in TEXT or f'"{name}"' in TEXT for name in STEPS)


def test_the_defaults_on_the_pages_are_those_of_the_models() -> None:
    rows = dict(re.findall(r"^\| `([a-z_.]+)` \|.*\| (.*) \|$", TEXT, re.M))
    policy = PolicyModel().model_dump(mode="json")

    assert json.loads(rows["catch_up"].strip("`")) == policy["catch_up"]
    assert json.loads(rows["overlap"].strip("`")) == policy["overlap"]
    assert json.loads(rows["max_waiting"].strip("`")) == policy["max_waiting"]
    assert json.loads(rows["retry.max_attempts"].strip("`")) == policy["retry"]["max_attempts"]
    assert json.loads(rows["retry.backoff"].strip("`")) == policy["retry"]["backoff"]
    assert json.loads(rows["alert_after"].strip("`")) == AlertSettings().after


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
