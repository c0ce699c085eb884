from typing import Any

import pytest

from data.small_app.document import data_in
from data.small_app.sources import stored_source
from models.tenant.document import parse_small_app, stored_small_app

QUERY = {"sql": "SELECT id FROM orders;", "connection": "warehouse"}
APPEND = {"mode": "append", "key": ["id"], "columns": {"id": "text"}}
SECRET = {"url": "env:REPORTS_URL", "headers": {"Authorization": "file:/run/token"}}


@pytest.mark.parametrize(
    ("source", "more", "changed"),
    [
        pytest.param({"file": "a.csv.gz"}, {}, {"format": "csv"}, id="packed_file"),
        pytest.param(SECRET, {"format": "parquet"}, {}, id="references"),
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
