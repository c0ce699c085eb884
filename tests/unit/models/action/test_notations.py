"""Rules of other schedulers: following what their error says gives a rule of the same meaning."""

import json
import re
from datetime import datetime, timedelta
from typing import Any

import pytest

from cron import CronSchedule
from models.action.document import ParseContext, parse_action
from models.action.intervals import IntervalModel
from models.action.rules import CronModel
from models.errors import InvalidAction
from models.values.durations import parse_span
from tests.factories import STEPS
from tests.unit.models.action.notations import NOTATIONS
from tests.unit.models.action.wrong_documents import NOW, action

TABLE = [
    pytest.param(text, meaning, id=f"{notation}: {text!a}")
    for notation, rules in NOTATIONS.items()
    for text, meaning in rules.items()
]
# A rule has at most so many faults, of which each error names one.
MOST_FAULTS = 4
ADVICE = re.compile(r"""write (?:(\{.*?\})|'([^']*)'|(\w[^;]*"timezone": "[^"]+"))""")
ITEM = re.compile(r"(minute|hour|day of month|month|day of week) '([^']*)'")
ZONE = re.compile(r'only the rule, and "timezone": "(.+)"')


def rule_of(when: dict[str, Any]) -> CronModel | IntervalModel:
    """Return a rule as it is read; raises InvalidAction."""
    context = ParseContext("UTC", NOW, STEPS, tick=timedelta(seconds=1))
    rule = parse_action(action(when=when), context).when.rules[0]
    assert isinstance(rule, CronModel | IntervalModel)
    return rule


def corrected(when: dict[str, Any], error: str) -> dict[str, Any]:
    """Return a rule as its error says that it should be written."""
    found = ADVICE.search(error)
    assert found is not None, error
    whole, text, zone = found.groups()
    if whole is not None:
        return dict(json.loads(whole))
    if zone is not None:
        rule = when["cron_rule"].partition(" ")[2]
        return {"cron_rule": rule, "timezone": ZONE.findall(error)[0]}
    item = ITEM.search(error.partition(": ")[2])
    if item is not None and text.count(" ") == 0:
        return {**when, "cron_rule": when["cron_rule"].lower().replace(item[2], text)}
    return {**when, "cron_rule": text}


def followed(when: dict[str, Any]) -> tuple[CronModel | IntervalModel, list[str]]:
    """Return what is accepted after the advice of each error, with these errors."""
    errors: list[str] = []
    while True:
        try:
            return rule_of(when), errors
        except InvalidAction as refused:
            errors.append(str(refused.problems[0]))
            assert len(errors) <= MOST_FAULTS, errors
            when = corrected(when, errors[-1])


def instants(rule: CronModel | IntervalModel) -> list[datetime] | timedelta:
    """Return the next ten instants of a cron rule, or the length of an interval."""
    if isinstance(rule, IntervalModel):
        return rule.every
    schedule = CronSchedule(rule.cron_rule, rule.timezone)
    found = [NOW]
    for _ in range(10):
        found.append(schedule.next(found[-1]) or NOW)
    return found


def meant(meaning: str) -> list[datetime] | timedelta:
    """Return the same of a meaning in the table."""
    if meaning.startswith("P"):
        return parse_span(meaning)
    fields = meaning.split(" ")
    when = {"cron_rule": " ".join(fields[:5]), "timezone": (fields[5:] or ["UTC"])[0]}
    return instants(rule_of(when))


@pytest.mark.parametrize(("text", "meaning"), TABLE)
def test_a_rule_of_another_notation_is_answered_with_ours(text: str, meaning: str) -> None:
    rule, errors = followed({"cron_rule": text})

    assert errors != []
    assert meant(meaning) == instants(rule)


def test_a_date_of_aws_is_answered_with_a_due_date() -> None:
    with pytest.raises(InvalidAction) as refused:
        rule_of({"cron_rule": "at(2027-01-01T09:00:00)"})

    when = corrected({}, str(refused.value.problems[0]))
    assert when == {"due_date": "2027-01-01T09:00:00"}
    parse_action(action(when=when), ParseContext("UTC", NOW, STEPS))


def test_the_table_is_of_many_rules() -> None:
    assert len(TABLE) >= 150
