from typing import Any

import pytest

from data.small_app.document import data_in
from models.tenant.document import InvalidSmallApp, parse_small_app, stored_small_app

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
    "notify": "false",
}


def problems(document: object) -> dict[str, str]:
    with pytest.raises(InvalidSmallApp) as refused:
        parse_small_app(document)
    return {problem.path: problem.remedy for problem in refused.value.problems}


def app(**changes: Any) -> dict[str, Any]:
    return {"name": "sales", **changes}


def test_a_small_app_is_read() -> None:
    found = data_in(parse_small_app(SALES))

    assert (found.name, found.zone, found.notify) == ("sales", "Europe/Paris", False)
    formats = {name: domain.format for name, domain in found.domains.items()}
    assert formats == {"orders": "csv", "rates": "json", "odd": "csv"}
    assert found.domains["orders"].source.file == "sales/orders.csv"
    assert found.templates["hello"].html is None


def test_a_small_app_needs_a_name_only() -> None:
    found = data_in(parse_small_app(app()))

    assert (found.zone, found.title, found.notify) == ("UTC", None, True)
    assert (found.domains, found.templates) == ({}, {})


def test_what_is_stored_reads_back_the_same() -> None:
    found = parse_small_app(SALES)
    stored = stored_small_app(found)

    assert parse_small_app(stored) == found
    assert stored["domains"]["orders"] == {"source": {"file": "sales/orders.csv"}, "format": "csv"}


def test_all_problems_are_reported_at_once() -> None:
    document = app(zone="x", domains={"a/b": {"source": {}}, "c": {"source": {"url": 5}}}, x=1)

    assert {"zone", "x", "domains.a/b", "domains.a/b.source", "domains.c.source.url"} <= set(
        problems(document)
    )


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"templates": {"t": {"subject": "s", "text": "x" * 100_001}}}, "templates.t.text"),
        ({"settings": {"a": "x" * 100_000}}, "settings"),
    ],
)
def test_texts_have_a_bound(changes: dict[str, Any], path: str) -> None:
    assert "at most 100000" in problems(app(**changes))[path]
