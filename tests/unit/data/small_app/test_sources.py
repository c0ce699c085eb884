from typing import Any

import pytest

from data.small_app.document import data_in
from data.small_app.sources import stored_source
from models.tenant.document import parse_small_app, stored_small_app


def domain(source: object, **more: Any) -> dict[str, Any]:
    return {"name": "shop", "domains": {"d": {"source": source, **more}}}


QUERY = {"sql": "SELECT id FROM orders;", "connection": "warehouse"}


@pytest.mark.parametrize(
    ("document", "stored"),
    [
        pytest.param(
            domain({"file": "a.csv.gz"}), {"file": "a.csv.gz", "format": "csv"}, id="packed_file"
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

    assert stored_source(data_in(app).domains["d"]) == stored
    assert parse_small_app(stored_small_app(app)) == app
