from typing import Any

import pytest

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
    found = parse_small_app(SALES)

    assert (found.name, found.zone, found.notify) == ("sales", "Europe/Paris", False)
    formats = {name: domain.format for name, domain in found.domains.items()}
    assert formats == {"orders": "csv", "rates": "json", "odd": "csv"}
    assert found.domains["orders"].source.file == "sales/orders.csv"
    assert found.templates["hello"].html is None


def test_a_small_app_needs_a_name_only() -> None:
    found = parse_small_app(app())

    assert (found.zone, found.title, found.notify) == ("UTC", None, True)
    assert (found.domains, found.templates) == ({}, {})


def test_what_is_stored_reads_back_the_same() -> None:
    found = parse_small_app(SALES)
    stored = stored_small_app(found)

    assert parse_small_app(stored) == found
    assert stored["domains"]["orders"] == {"source": {"file": "sales/orders.csv"}, "format": "csv"}


def domain(source: object, **more: Any) -> dict[str, Any]:
    return app(domains={"d": {"source": source, **more}})


@pytest.mark.parametrize(
    ("document", "path", "remedy"),
    [
        ([], "document", "write an object"),
        ({}, "name", "is required"),
        (app(name="Sales app"), "name", '"title"'),
        (app(name="a" * 65), "name", "1 to 64"),
        (app(name=5), "name", "1 to 64"),
        (app(zone="Pariss"), "zone", "write 'Europe/Paris'"),
        (app(timezone="UTC"), "timezone", "known key"),
        (app(title=""), "title", "is empty"),
        (app(notify="no"), "notify", "true or false"),
        (app(domains=[]), "domains", "write an object"),
        (app(domains={"a": 5}), "domains.a", "write an object"),
        (app(domains={"a": {}}), "domains.a.source", '"source"'),
        (app(domains={"a/b": {"source": {"file": "a.csv"}}}), "domains.a/b", "slash"),
        (app(domains={"": {"source": {"file": "a.csv"}}}), 'domains.""', "is empty"),
        (app(domains={".a": {"source": {"file": "a.csv"}}}), "domains..a", "dot"),
        (domain({}), "domains.d.source", "write either"),
        (domain({"file": "a.csv", "url": "https://example.com"}), "domains.d.source", "either"),
        (domain({"file": "/etc/passwd"}), "domains.d.source.file", "inside the data folder"),
        (domain({"file": "../a.csv"}), "domains.d.source.file", "inside the data folder"),
        (domain({"file": "a\\b.csv"}), "domains.d.source.file", "inside the data folder"),
        (domain({"file": "C:/a.csv"}), "domains.d.source.file", "inside the data folder"),
        (domain({"file": "a\0.csv"}), "domains.d.source.file", "control character"),
        (domain({"url": "file:///a.csv"}), "domains.d.source.url", "http or https"),
        (domain({"url": "https://[x/a.csv"}), "domains.d.source.url", "http or https"),
        (domain({"file": "a.csv", "sheet": 1}), "domains.d.source.sheet", "known key"),
        (domain({"file": "a.txt"}), "domains.d.format", '"jsonl" or "parquet"'),
        (domain({"file": "a.csv"}, format="xml"), "domains.d.format", '"csv", "json"'),
        (app(templates={"t": {"subject": "s"}}), "templates.t.text", "is required"),
        (app(templates={"t": {"subject": "a\nb", "text": "x"}}), "templates.t.subject", "line"),
        (app(templates={"t": {"subject": "s", "text": "x" * 100_001}}), "templates.t.text", "most"),
        (app(templates={"t": {"subject": "s", "text": "x", "htm": ""}}), "templates.t.htm", "html"),
    ],
)
def test_a_wrong_small_app_is_refused(document: object, path: str, remedy: str) -> None:
    found = problems(document)

    assert path in found
    assert remedy in found[path]


def test_all_problems_are_reported_at_once() -> None:
    document = app(zone="x", domains={"a/b": {"source": {}}, "c": {"source": {"url": 5}}}, x=1)

    assert {"zone", "x", "domains.a/b", "domains.a/b.source", "domains.c.source.url"} <= set(
        problems(document)
    )
