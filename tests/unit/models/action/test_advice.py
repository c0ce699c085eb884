"""The advice of an error works when it is followed to the letter."""

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from models.action import ParseContext, parse_action
from models.action.warnings import KnownNames, warnings_of
from models.errors import InvalidAction
from models.json_text import InvalidJson, read_json
from runtime.documents import InvalidYaml, read_yaml

NOW = datetime(2026, 11, 22, tzinfo=UTC)
GOOD = {"name": "x", "operations": {"maintenance": True}, "when": {"cron_rule": "0 7 * * 1"}}


def refusal(document: object) -> str:
    with pytest.raises(InvalidAction) as caught:
        parse_action(document, ParseContext("UTC", NOW))
    return str(caught.value)


def advised(text: str) -> Any:
    """Return the JSON at the end of an error."""
    found = re.search(r"(?:such as|objects:|write) ([\[{].*)$", text)
    assert found, text
    return json.loads(found[1])


@pytest.mark.parametrize(
    ("key", "wrong"),
    [
        pytest.param("when", "0 7 * * 1", id="when"),
        pytest.param("when", "mondays", id="when_in_words"),
        pytest.param("operations", "refresh", id="operations"),
        pytest.param("recipients", "all", id="recipients"),
    ],
)
def test_an_object_is_shown_where_one_is_wanted(key: str, wrong: str) -> None:
    text = refusal(GOOD | {key: wrong})

    assert "write an object in { }, such as" in text
    parse_action(GOOD | {key: advised(text)}, ParseContext("UTC", NOW))


@pytest.mark.parametrize(
    "wrong", ["ann@example.com", "https://example.com/hook", ["ann@example.com"]]
)
def test_a_hook_is_shown_as_it_is_written(wrong: object) -> None:
    found = advised(refusal(GOOD | {"hooks": {"on_failure": wrong}}))
    hooks = found if isinstance(found, list) else [found]

    parse_action(GOOD | {"hooks": {"on_failure": hooks}}, ParseContext("UTC", NOW))


@pytest.mark.parametrize("zone", ["UTC+2", "+02:00", "GMT-5"])
def test_an_offset_is_not_mended_to_another_zone(zone: str) -> None:
    text = refusal(GOOD | {"when": {"cron_rule": "0 7 * * 1", "timezone": zone}})

    assert "an offset is not a zone; write an IANA name such as 'Europe/Paris'" in text


@pytest.mark.parametrize(("step", "needed"), [("celery_task", "task"), ("send_email", "template")])
def test_a_step_names_the_parameters_that_it_needs(step: str, needed: str) -> None:
    text = refusal(GOOD | {"operations": {step: "x"}})

    assert f'write an object with its parameters: {{"{needed}": …}}' in text
    assert "true" not in text.split("operations.", 1)[1]


def test_a_short_interval_names_the_setting_that_allows_it() -> None:
    assert "SCHED_SCHEDULER_TICK_SECONDS" in refusal(GOOD | {"when": {"every": 10}})


def test_an_unknown_step_names_the_setting_of_own_steps() -> None:
    assert "SCHED_STEP_MODULES" in refusal(GOOD | {"operations": {"count_files": True}})


def test_the_document_of_a_small_app_is_recognised() -> None:
    text = refusal({"name": "shop", "title": "Shop", "zone": "UTC", "domains": {}})

    assert text == ("document: is the document of a small app; store it with `minutehand app add`")


def test_a_text_that_is_no_json_is_not_taken_for_a_comment() -> None:
    with pytest.raises(InvalidJson, match="a document begins with"):
        read_json("# Minutehand\n\nA cron daemon.\n")


def test_yaml_is_refused_in_one_line() -> None:
    with pytest.raises(InvalidYaml) as caught:
        read_yaml("name: x\n  when: y\n z")

    assert "\n" not in str(caught.value)
    assert "line 2" in str(caught.value)


def test_a_step_beyond_its_field_is_a_warning() -> None:
    action = parse_action(GOOD | {"when": {"cron_rule": "*/90 * * * *"}}, ParseContext("UTC", NOW))

    (warning,) = warnings_of(action, KnownNames())

    parse_action(GOOD | {"when": advised(warning)}, ParseContext("UTC", NOW))
