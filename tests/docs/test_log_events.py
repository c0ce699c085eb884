"""docs/reference/log-events.md: every log call has an event, and every event a call."""

import ast
import json
import logging
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from runtime.logs.events import STEP_LOGGER, Line, names_in
from runtime.logs.lines import JsonFormatter

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "log-events.md").read_text(encoding="utf-8")
# `minutebook` logs in the processes of its users, in their form.
ROOMS = (
    *("broker", "cli", "cron", "data", "interop", "models", "processes"),
    *("runtime", "scheduler", "services", "tasks", "web"),
)
LEVELS = ("debug", "info", "warning", "error", "exception", "critical", "log")
# Calls that pass an event on: of a batch of the sweep, and `log_event` of jobs over HTTP.
PASSED_ON = {"*event", "event"}
PLACE = re.compile(r"\{(\w+)(?:![a-z])?(?::[^}]*)?\}")


class Logged(NamedTuple):
    """A call that logs an event, or a pair that is passed on to one."""

    level: str
    event: str
    text: str


@cache
def nodes() -> list[ast.AST]:
    files = chain.from_iterable((ROOT / room).rglob("*.py") for room in ROOMS)
    trees = (ast.parse(file.read_text(encoding="utf-8")) for file in files)
    return [
        one for tree in trees for one in ast.walk(tree) if isinstance(one, ast.Call | ast.Tuple)
    ]


def calls() -> Iterator[tuple[str, list[ast.expr]]]:
    """Yield the method of each log call, and its arguments from the event on."""
    for node in nodes():
        match node:
            case ast.Call(func=ast.Attribute(ast.Name("logger"), method)) if method in LEVELS:
                yield method, node.args[method == "log" :]


def events() -> Iterator[Logged]:
    """Yield each event with its level, `any` where the call decides, and its text."""
    for method, arguments in calls():
        match arguments:
            case [ast.Constant(str(event)), ast.Constant(str(text)), *_]:
                level = {"exception": "ERROR", "log": "any"}.get(method, method.upper())
                yield Logged(level, event, text)
    for node in nodes():
        match node:
            case ast.Tuple([ast.Constant(str(event)), ast.Constant(str(text))]) if " {" in text:
                yield Logged("any", event, text)


def test_every_log_call_names_its_event_and_its_text() -> None:
    others = {
        ast.unparse(arguments[0])
        for _, arguments in calls()
        if not all(isinstance(one, ast.Constant) for one in arguments[:2])
    }

    assert others == PASSED_ON


def test_a_call_has_a_value_for_each_name_of_its_text() -> None:
    wrong = [
        ast.unparse(text)
        for text, *values in (found[1:] for _, found in calls() if len(found) > 1)
        if isinstance(text, ast.Constant)
        and not any(isinstance(one, ast.Starred) for one in values)
        and len(names_in(str(text.value))) != len(values)
    ]

    assert wrong == []


def test_all_texts_of_an_event_have_the_same_names() -> None:
    names = defaultdict(set)
    for one in events():
        names[one.event].add(names_in(one.text))

    assert [event for event, found in names.items() if len(found) > 1] == []


def test_the_page_lists_each_event_with_its_levels_and_messages() -> None:
    levels: dict[str, set[str]] = defaultdict(set)
    texts: dict[str, set[str]] = defaultdict(set)
    for one in events():
        levels[one.event] |= {one.level} - {"any"}
        texts[one.event].add(PLACE.sub(r"{\1}", one.text))
    rows = re.findall(r"^\| `(\w+)` \| ([A-Z, ]+) \| (.+) \|$", PAGE.split("## All")[1], re.M)

    assert [row[0] for row in rows] == sorted(texts)
    for event, level, text in rows:
        assert text == "; ".join(sorted(texts[event], key=text.find))
        assert levels[event] <= set(level.split(", ")), event


def test_a_line_of_json_has_the_event_and_its_values_by_name() -> None:
    text = "{triggerer}: operation {operation} started (attempt {attempt})"
    values = {"triggerer": "Manual run", "operation": "1dd03b83", "attempt": 2}
    said = Line("operation_started", text, values)
    record = logging.LogRecord("minutebook.execute", logging.INFO, "", 0, said, None, None)
    line = json.loads(JsonFormatter().format(record))

    assert line["event"] == "operation_started"
    assert {key: line[key] for key in values} == values
    assert line["message"] == "Manual run: operation 1dd03b83 started (attempt 2)"


def test_a_line_of_a_step_is_no_event_of_the_program_whatever_it_says() -> None:
    said = logging.LogRecord(STEP_LOGGER, logging.INFO, "", 0, "daemon %s stopped", ("x",), None)
    line = json.loads(JsonFormatter().format(said))

    assert (line["event"], "daemon" in line) == ("step_line", False)
