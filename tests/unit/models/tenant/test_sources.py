from typing import Any

import pytest

from models.tenant.document import InvalidSmallApp, parse_small_app, stored_small_app
from models.tenant.sources import stored_source, warnings_of_domains


def domain(source: object, **more: Any) -> dict[str, Any]:
    """Return a small app's document with the domain `d`."""
    return {"name": "shop", "domains": {"d": {"source": source, **more}}}


QUERY = {"sql": "SELECT id FROM orders;", "connection": "warehouse"}


@pytest.mark.parametrize(
    ("document", "stored"),
    [
        pytest.param(
            domain({"file": "a.csv.gz"}), {"file": "a.csv.gz", "format": "csv"}, id="packed_file"
        ),
        pytest.param(
            domain({"url": "https://example.com/a.ndjson?x=1"}),
            {"url": "https://example.com/a.ndjson?x=1", "format": "jsonl"},
            id="url",
        ),
        pytest.param(
            domain(
                {"url": "env:REPORTS_URL", "headers": {"Authorization": "file:/run/token"}},
                format="parquet",
            ),
            {
                "url": "env:REPORTS_URL",
                "headers": {"Authorization": "file:/run/token"},
                "format": "parquet",
            },
            id="references",
        ),
        pytest.param(
            domain(QUERY), {"sql": "SELECT id FROM orders", "connection": "warehouse"}, id="query"
        ),
        pytest.param(
            domain({"reader": "crm", "parameters": {"since": 5}}),
            {"reader": "crm", "parameters": {"since": 5}},
            id="reader",
        ),
        pytest.param(
            domain(QUERY, mode="append", key=["id"], columns={"id": "text"}),
            {
                "sql": "SELECT id FROM orders",
                "connection": "warehouse",
                "columns": {"id": "text"},
                "mode": "append",
                "key": ["id"],
            },
            id="append",
        ),
    ],
)
def test_a_source_is_stored_as_it_was_written(
    document: dict[str, Any], stored: dict[str, Any]
) -> None:
    app = parse_small_app(document)

    assert stored_source(app.domains["d"]) == stored
    assert parse_small_app(stored_small_app(app)) == app


@pytest.mark.parametrize(
    ("document", "path", "remedy"),
    [
        (domain({"file": "a.csv", "reader": "crm"}), "source", "write either"),
        (domain({"sql": "SELECT 1"}), "source.connection", "name a connection"),
        (domain({"sql": "DELETE FROM x", "connection": "w"}), "source.sql", "one query that reads"),
        (
            domain({"sql": "SELECT 1", "connection": 5}),
            "source.connection",
            "text in double quotes",
        ),
        (domain(QUERY, format="csv"), "format", "have a format"),
        (
            domain({"file": "a.csv", "connection": "w"}),
            "source.connection",
            'valid only with "sql"',
        ),
        (domain({"file": "a.csv", "headers": {}}), "source.headers", 'valid only with "url"'),
        (
            domain({"file": "a.csv", "parameters": {}}),
            "source.parameters",
            'valid only with "reader"',
        ),
        (domain({"reader": "crm", "parameters": []}), "source.parameters", "write an object"),
        (domain({"file": "a.csv"}, mode="apend"), "mode", 'did you mean "append"'),
        (domain({"file": "a.csv"}, mode="append"), "key", "columns that identify a row"),
        (domain({"file": "a.csv"}, key=["id"]), "key", '"mode": "append"'),
        (domain({"file": "a.csv"}, columns={"a": "int"}), "columns", 'did you mean "integer"'),
        (domain({"file": "a.csv"}, columns=["a"]), "columns", "write an object"),
        (domain({"url": "env:1", "headers": {}}, format="csv"), "source.url", "name of a variable"),
        (domain({"url": "file:///etc/passwd"}, format="csv"), "source.url", "http or https"),
    ],
)
def test_a_wrong_source_is_refused(document: dict[str, Any], path: str, remedy: str) -> None:
    with pytest.raises(InvalidSmallApp) as refused:
        parse_small_app(document)

    found = {problem.path: problem.remedy for problem in refused.value.problems}
    assert f"domains.d.{path}" in found
    assert remedy in found[f"domains.d.{path}"]


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("Authorization", "Bearer s3cret", "write a reference"),
        ("X-Api-Key", "s3cret", "write a reference"),
        ("Authorization", "env:s3cret here", "name of a variable"),
        ("Host", "s3cret", "not a header that a source may send"),
        ("A b", "s3cret", "not a header that a source may send"),
        ("X-Note", "s3cret\r\nX: y", "line break"),
    ],
)
def test_a_wrong_header_is_refused_and_not_shown(name: str, value: str, remedy: str) -> None:
    with pytest.raises(InvalidSmallApp) as refused:
        parse_small_app(domain({"url": "https://example.com/a.csv", "headers": {name: value}}))

    (problem,) = refused.value.problems
    assert problem.path == f"domains.d.source.headers.{name}"
    assert remedy in problem.remedy
    assert "s3cret" not in str(refused.value)


def test_unknown_names_are_warnings() -> None:
    app = parse_small_app(
        {
            "name": "shop",
            "domains": {
                "a": {"source": {"sql": "SELECT 1", "connection": "warehose"}},
                "b": {"source": {"reader": "crm"}},
                "c": {"source": {"sql": "SELECT 1", "connection": "warehouse"}},
            },
        }
    )

    assert warnings_of_domains(app.domains, ["warehouse"], []) == [
        'domains.a.source.connection "warehose": not known now; did you mean "warehouse"?',
        'domains.b.source.reader "crm": not known now',
    ]


def test_what_looks_like_a_secret_in_clear_is_warned_of_and_not_shown() -> None:
    parameters = {"api_key": "s3cret", "token": "env:CRM_TOKEN", "region": "eu", "author": "ann"}
    app = parse_small_app(
        {
            "name": "shop",
            "domains": {
                "a": {"source": {"reader": "crm", "parameters": parameters}},
                "b": {"source": {"url": "https://example.com/b.csv?token=s3cret&day=1"}},
            },
        }
    )

    assert warnings_of_domains(app.domains, [], ["crm"]) == [
        (
            "domains.a.source.parameters.api_key: looks like a plain-text secret; "
            'write "env:NAME" instead'
        ),
        (
            "domains.b.source.url, token: looks like a plain-text secret; "
            'write "env:NAME" for the whole URL'
        ),
    ]


@pytest.mark.parametrize(
    "source",
    [
        pytest.param({"url": "https://ann:s3cret@example.com/a.csv"}, id="url"),
        pytest.param(
            {"url": "https://example.com/a.csv", "headers": {"X-Auth": "s3cret"}}, id="header"
        ),
        pytest.param(
            {"url": "https://a.b/a.csv", "file": "a.csv", "headers": {"Cookie": "s3cret"}},
            id="two_places",
        ),
    ],
)
def test_a_secret_in_clear_is_refused_and_not_shown(source: object) -> None:
    with pytest.raises(InvalidSmallApp) as refused:
        parse_small_app(domain(source))

    assert "s3cret" not in str(refused.value)
    assert "s3cret" not in str([problem.value for problem in refused.value.problems])
