"""What looks secret in what an application sent, and in what its worker reports, is hidden."""

from dataclasses import replace
from typing import Any

import pytest

from models.celery_task import HandOver
from runtime.sections.celery import CelerySettings
from services.followers.attempts import LONGEST_LINE, MOST_LINES, in_lines
from services.operations.sent import SentTask, sent_task
from tests.factories import make_plan, make_rule
from tests.tables import table

PLAN = make_plan(make_rule(cron_rule="0 3 * * *"))
HIDING = CelerySettings()
SESAME = ("sesame", ["sesame"], {"a": "sesame"}, None)


def shown(settings: CelerySettings = HIDING, **known: Any) -> SentTask:
    found = sent_task(replace(PLAN, hand_over=HandOver(task="shop.bill", **known)), settings)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "name", ["passwords", "db_password_ro", "Authorization", "api-keys", "api_key", "basicAuth"]
)
def test_an_argument_whose_name_has_a_word_of_secrets_is_hidden(name: str) -> None:
    for value in SESAME:
        found = shown(kwargs={name: value, "deep": [{name: value}]})

        assert found.kwargs == {name: "***", "deep": [{name: "***"}]}


@pytest.mark.parametrize("name", ["author", "order_id", "note"])
def test_an_argument_of_another_name_is_shown(name: str) -> None:
    assert shown(kwargs={name: "the word password"}).kwargs == {name: "the word password"}


def test_an_expression_of_an_installation_hides_further_names_or_none() -> None:
    given = {"iban": "DE1", "password": "x"}

    assert shown(CelerySettings(hide="iban="), kwargs=given).kwargs == dict.fromkeys(given, "***")
    assert shown(CelerySettings(hide=""), kwargs=given).kwargs == given
    with pytest.raises(ValueError, match="write a regular expression of Python"):
        CelerySettings(hide="(")


def test_arguments_by_position_are_hidden_by_their_texts_alone() -> None:
    found = shown(args=("token=abc", 3, None, [{"secret": "x"}]))

    assert found.args == ("***", 3, None, [{"secret": "***"}])


def test_a_run_of_steps_sends_no_task() -> None:
    assert sent_task(PLAN, HIDING) is sent_task(None, HIDING) is None


def lines_of(report: dict[str, Any], **settings: str) -> list[tuple[str, str]]:
    kept = in_lines({"outcome": "failed", **report}, CelerySettings(**settings).secret)
    return [(line["level"], line["message"]) for line in kept.get("lines", [])]


@pytest.mark.parametrize(
    ("said", "shown"), table(__file__, "what_looks_like_a_secret_in_a_report_is_hidden")
)
def test_what_looks_like_a_secret_in_a_report_is_hidden(said: str, shown: str) -> None:
    ((level, text),) = lines_of({"traceback": [said]})

    assert level == "ERROR"
    assert text.endswith(shown)
    assert "hunter2" not in text
    assert lines_of({"returned": said})[0][1].endswith(shown)


@pytest.mark.parametrize("said", [None, 3, "text"])
def test_what_is_no_list_of_lines_is_left_out(said: object) -> None:
    assert lines_of({"traceback": said, "returned": 3}) == []


def test_a_hostile_task_cannot_fill_the_table() -> None:
    found = lines_of({"traceback": ["x" * 10**6] * 1_000, "lines": [{"message": "forged"}]})

    assert len(found) == MOST_LINES
    assert {len(text) for _, text in found} == {LONGEST_LINE}


def test_an_installation_may_hide_all() -> None:
    found = lines_of({"traceback": ["a"], "returned": "b"}, hide=".+")

    assert {text for _, text in found} == {"***"}
