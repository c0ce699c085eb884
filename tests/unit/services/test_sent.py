from dataclasses import replace
from typing import Any

import pytest

from models.celery_task import HandOver
from runtime.sections.celery import CelerySettings
from services.operations.sent import SentTask, sent_task
from tests.factories import make_plan, make_rule

PLAN = make_plan(make_rule(cron_rule="0 3 * * *"))


def shown(hide: str | None = None, **known: Any) -> SentTask:
    settings = CelerySettings() if hide is None else CelerySettings(hide=hide)
    found = sent_task(replace(PLAN, hand_over=HandOver(task="shop.bill", **known)), settings)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("kwargs", "expected"),
    [
        ({"limit": 5, "city": "Paris"}, {"limit": 5, "city": "Paris"}),
        ({"password": "sesame", "api_key": 7}, {"password": "***", "api_key": "***"}),
        ({"at": {"token": ["a", "b"]}}, {"at": {"token": "***"}}),
        ({"note": "the word password"}, {"note": "the word password"}),
    ],
)
def test_what_looks_secret_in_an_argument_is_hidden(
    kwargs: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert shown(kwargs=kwargs).kwargs == expected


@pytest.mark.parametrize(
    "name",
    [
        "passwords", "private_key", "db_password_ro", "Authorization", "api-keys", "basicAuth",
    ],
)  # fmt: skip
@pytest.mark.parametrize("value", ["sesame", ["sesame"], {"a": "sesame"}, None])
def test_an_argument_whose_name_has_a_word_of_secrets_is_hidden(name: str, value: Any) -> None:
    found = shown(kwargs={name: value, "deep": [{name: value}]})

    assert found.kwargs == {name: "***", "deep": [{name: "***"}]}


@pytest.mark.parametrize("name", ["author", "authors", "order_id", "when"])
def test_an_argument_of_another_name_is_shown(name: str) -> None:
    assert shown(kwargs={name: "x"}).kwargs == {name: "x"}


def test_an_expression_of_an_installation_hides_further_names() -> None:
    assert shown("iban=", kwargs={"iban": "DE1", "password": "x"}).kwargs == {
        "iban": "***",
        "password": "***",
    }


def test_arguments_by_position_are_hidden_by_their_texts_alone() -> None:
    found = shown(args=("token=abc", 3, None, [{"secret": "x"}]))

    assert found.args == ("***", 3, None, [{"secret": "***"}])


def test_an_empty_setting_hides_nothing() -> None:
    assert shown(hide="", kwargs={"password": "sesame"}).kwargs == {"password": "sesame"}


def test_a_run_of_steps_sends_no_task() -> None:
    assert sent_task(PLAN, CelerySettings()) is None
    assert sent_task(None, CelerySettings()) is None
