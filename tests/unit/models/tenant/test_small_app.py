"""The document of a small app: what is read and stored, what it changes, what is written wrong.

`mistakes.json` holds documents with their errors, or with the warnings of their domains. After a
change of an error, run `python -m tests.unit.models.tenant.test_small_app` to record the new text.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from data.small_app.document import data_in
from data.small_app.sources import stored_source, warnings_of_domains
from data.small_app.staged import written
from models.store.tenants import read_only
from models.store.tenants.app_apply import changes_between
from models.tenant.document import LONGEST, InvalidSmallApp, parse_small_app, stored_small_app

FILE = Path(__file__).with_name("mistakes.json")
MISTAKES: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
SECRET = "s3cret"
SALES: dict[str, Any] = {
    "name": "sales",
    "zone": "europe/paris",
    "title": "Sales of the year",
    "domains": {
        "orders": {"source": {"file": "sales/orders.csv"}},
        "rates": {"source": {"url": "https://example.com/rates.JSON?day=1"}},
        "odd": {"source": {"file": "odd.txt"}, "format": "csv"},
    },
    "templates": {"hello": {"subject": "Hello", "text": "Dear {{ user.name }},\n…"}},
    "settings": {"currency": "EUR"},
    "notify": "false",
}
QUERY = {"sql": "SELECT id FROM orders;", "connection": "warehouse"}
APPEND = {"mode": "append", "key": ["id"], "columns": {"id": "text"}}
REFERENCES = {"url": "env:REPORTS_URL", "headers": {"Authorization": "file:/run/token"}}


def answered(document: object) -> tuple[list[str], list[object]]:
    """Return what is said of a document, and the values that errors show."""
    try:
        app = parse_small_app(document)
    except InvalidSmallApp as refused:
        return [*map(str, refused.problems)], [one.value for one in refused.problems]
    return warnings_of_domains(data_in(app).domains, ["warehouse"], ["crm"]), []


@pytest.mark.parametrize("mistake", [pytest.param(one, id=one["mistake"]) for one in MISTAKES])
def test_a_mistake_is_answered_and_shows_no_secret(mistake: dict[str, Any]) -> None:
    said, values = answered(mistake["document"])

    assert said == mistake["says"]
    assert SECRET not in str([*said, *values])


@pytest.mark.parametrize(
    ("changes", "path", "remedy"),
    [
        ({"design": {"start": {"a": "x" * LONGEST}}}, "design.start", "is too long"),
        (
            {"templates": {"t": {"subject": "s", "text": "x" * 100_001}}},
            "templates.t.text",
            "at most 100000",
        ),
    ],
    ids=["document", "template"],
)
def test_parts_have_a_bound(changes: dict[str, Any], path: str, remedy: str) -> None:
    with pytest.raises(InvalidSmallApp) as refused:
        parse_small_app({"name": "sales", **changes})

    (problem,) = refused.value.problems
    assert problem.path == path
    assert remedy in problem.remedy


def test_a_small_app_is_read() -> None:
    found = data_in(parse_small_app(SALES))

    assert (found.name, found.zone, found.notify) == ("sales", "Europe/Paris", False)
    formats = {name: domain.format for name, domain in found.domains.items()}
    assert formats == {"orders": "csv", "rates": "json", "odd": "csv"}
    assert found.domains["orders"].source.file == "sales/orders.csv"
    assert found.templates["hello"].html is None
    assert (found.design, found.permissions) == ({}, {})


def test_what_is_stored_reads_back_the_same() -> None:
    start = {"title": "Sales", "tiles": [{"of": "orders", "height": 2.5}], "dark": None}
    found = parse_small_app({**SALES, "design": {"start": start, "menu": {}}})
    stored = stored_small_app(found)

    assert parse_small_app(stored) == found
    assert stored["domains"]["orders"] == {"source": {"file": "sales/orders.csv"}, "format": "csv"}
    assert data_in(found).design == {"start": start, "menu": {}}


@pytest.mark.parametrize(
    ("source", "more", "changed"),
    [
        pytest.param({"file": "a.csv.gz"}, {}, {"format": "csv"}, id="packed_file"),
        pytest.param(REFERENCES, {"format": "parquet"}, {}, id="references"),
        pytest.param({"reader": "crm", "parameters": {"since": 5}}, {}, {}, id="reader"),
        pytest.param(QUERY, APPEND, {"sql": "SELECT id FROM orders"}, id="append"),
    ],
)
def test_a_source_is_stored_as_it_was_written(
    source: dict[str, Any], more: dict[str, Any], changed: dict[str, Any]
) -> None:
    app = parse_small_app({"name": "shop", "domains": {"d": {"source": source, **more}}})

    assert stored_source(data_in(app).domains["d"]) == {**source, **more, **changed}
    assert parse_small_app(stored_small_app(app)) == app


def test_the_order_of_keys_makes_no_other_document() -> None:
    assert written({"a": 1, "b": [2]}) == written({"b": [2], "a": 1})


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"zone": "UTC"}, ["zone changed"]),
        ({"calendars": {}}, ["calendars added"]),
        ({"title": None}, ["title removed"]),
        ({"templates": {}}, ['template "hello" removed']),
        (
            {"domains": {**SALES["domains"], "odd": {}, "c": {}}},
            ['domain "c" added', 'domain "odd" changed'],
        ),
        ({"settings": {"currency": "USD"}}, ['setting "currency" changed']),
    ],
)
def test_each_change_is_reported(changes: dict[str, Any], expected: list[str]) -> None:
    new = {key: value for key, value in {**SALES, **changes}.items() if value is not None}

    assert changes_between(SALES, new, {"domains", "templates", "settings"}) == expected


def test_settings_cannot_be_changed() -> None:
    settings = read_only({"limits": {"rows": [1, 2]}})

    assert settings["limits"]["rows"] == (1, 2)
    with pytest.raises(TypeError):
        settings["limits"]["more"] = 1


def record() -> None:
    told = [{**one, "says": answered(one["document"])[0]} for one in MISTAKES]
    rows = [json.dumps(one, ensure_ascii=False) for one in told]
    FILE.write_text("[\n  " + ",\n  ".join(rows) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    record()
