from typing import Any

import pytest

from runtime.sections.celery import CelerySettings
from services.followers.attempts import LONGEST_LINE, MOST_LINES, in_lines


def lines_of(report: dict[str, Any], **settings: str) -> list[tuple[str, str]]:
    kept = in_lines({"outcome": "failed", **report}, CelerySettings(**settings).secret)
    return [(line["level"], line["message"]) for line in kept.get("lines", [])]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("db = connect(password='hunter2')", "db = connect(***"),
        ("psycopg.connect('postgresql://shop:hunter2@db/shop')", "***@db/shop')"),
        ("headers = {'Authorization': 'Bearer hunter2'}", "headers = {'***"),
        ("API_KEY=hunter2 failed", "*** failed"),
        ("ValueError: no printer", "ValueError: no printer"),
    ],
)
def test_what_looks_like_a_secret_is_hidden(said: str, shown: str) -> None:
    ((level, text),) = lines_of({"traceback": [said]})

    assert level == "ERROR"
    assert text.endswith(shown)
    assert "hunter2" not in text or said == shown


def test_a_value_is_a_line_too() -> None:
    assert lines_of({"returned": "{'token': 'hunter2'}"})[0][1].startswith("returned {'***")


@pytest.mark.parametrize("said", [None, 3, "text", {"a": 1}])
def test_what_is_no_list_of_lines_is_left_out(said: object) -> None:
    assert lines_of({"traceback": said, "returned": 3}) == []


def test_a_hostile_task_cannot_fill_the_table() -> None:
    found = lines_of({"traceback": ["x" * 10**6] * 1_000, "lines": [{"message": "forged"}]})

    assert len(found) == MOST_LINES
    assert {len(text) for _, text in found} == {LONGEST_LINE}


def test_an_installation_may_hide_all() -> None:
    found = lines_of({"traceback": ["a"], "returned": "b"}, hide=".+")

    assert {text for _, text in found} == {"***"}


def test_an_expression_that_is_none_stops_the_start() -> None:
    with pytest.raises(ValueError, match="write a regular expression of Python"):
        CelerySettings(hide="(")
