"""docs/reference/log-events.md: every log call has an event, and every event a call."""

import ast
import json
import logging
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from runtime.logs.events import EVENTS, STEP_LOGGER
from runtime.logs.lines import JsonFormatter

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "log-events.md").read_text(encoding="utf-8")
# `minutebook` logs in the processes of its users, in their form.
ROOMS = (
    *("broker", "cli", "cron", "data", "models", "moving", "processes"),
    *("runtime", "scheduler", "tasks", "views", "web"),
)
LEVELS = ("debug", "info", "warning", "error", "exception", "critical", "log")
# Calls that pass a message on: that of a batch of the sweep, and `log_event` of jobs over HTTP.
PASSED_ON = {"text", "'%s %s'"}
PLACE = re.compile(r"%[+.\d]*[sdrf]")


def calls() -> Iterator[tuple[str, str]]:
    """Yield the method and the message of each log call: as source, if it is no event's."""
    for file in chain.from_iterable((ROOT / room).rglob("*.py") for room in ROOMS):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Attribute(ast.Name("logger"), method)) if method in LEVELS:
                    message = node.args[1 if method == "log" else 0]
                    text = getattr(message, "value", None)
                    yield method, str(text) if text in EVENTS else ast.unparse(message)


def test_every_log_call_has_an_event() -> None:
    assert {message for _, message in calls()} - set(EVENTS) == PASSED_ON


def test_every_event_has_a_log_call() -> None:
    sources = [
        node.value
        for file in chain.from_iterable((ROOT / room).rglob("*.py") for room in ROOMS)
        if file.name != "events.py" or file.parent.name != "logs"
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]

    assert set(EVENTS) - set(sources) == set()


def test_an_event_has_a_name_for_each_value_of_its_message() -> None:
    """Messages of one event have the same fields."""
    fields = defaultdict(set)
    for message, event in EVENTS.items():
        assert len(PLACE.findall(message)) == len(event.fields), message
        fields[event.name].add(event.fields)

    assert [name for name, found in fields.items() if len(found) > 1] == []


def test_the_page_lists_each_event_with_its_levels_fields_and_messages() -> None:
    levels, messages = defaultdict(set), defaultdict(list)
    for method, message in calls():
        if message in EVENTS and method != "log":
            levels[EVENTS[message].name].add("ERROR" if method == "exception" else method.upper())
    for message, event in EVENTS.items():
        names = iter(event.fields)
        shown = PLACE.sub(lambda _, names=names: f"{{{next(names)}}}", message)  # type: ignore[misc]
        messages[event.name].append(shown)
    rows = re.findall(
        r"^\| `(\w+)` \| ([A-Z, ]+) \| (.*?) ?\| (.+) \|$", PAGE.split("## All")[1], re.M
    )

    assert [row[0] for row in rows] == sorted(messages)
    for name, level, fields, text in rows:
        event = next(one for one in EVENTS.values() if one.name == name)
        assert tuple(re.findall(r"`(\w+)`", fields)) == event.fields
        assert text == "; ".join(sorted(messages[name], key=text.index))
        assert levels[name] <= set(level.split(", ")), name


def test_a_line_of_json_has_the_event_and_its_values_by_name() -> None:
    record = logging.LogRecord(
        "minutebook.execute",
        logging.INFO,
        "",
        0,
        "%s: operation %s started (attempt %d)",
        None,
        None,
    )
    record.args = ("Manual run", "1dd03b83", 2)
    line = json.loads(JsonFormatter().format(record))

    assert line["event"] == "operation_started"
    assert (line["triggerer"], line["operation"], line["attempt"]) == ("Manual run", "1dd03b83", 2)
    assert line["message"] == "Manual run: operation 1dd03b83 started (attempt 2)"


def test_a_line_of_a_step_is_no_event_of_the_program_whatever_it_says() -> None:
    said = logging.LogRecord(STEP_LOGGER, logging.INFO, "", 0, "daemon %s stopped", ("x",), None)
    line = json.loads(JsonFormatter().format(said))

    assert (line["event"], "daemon" in line) == ("step_line", False)
