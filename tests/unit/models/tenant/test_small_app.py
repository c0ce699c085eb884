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


def test_a_small_app_is_read() -> None:
    found = data_in(parse_small_app(SALES))

    assert (found.name, found.zone, found.notify) == ("sales", "Europe/Paris", False)
    formats = {name: domain.format for name, domain in found.domains.items()}
    assert formats == {"orders": "csv", "rates": "json", "odd": "csv"}
    assert found.domains["orders"].source.file == "sales/orders.csv"
    assert found.templates["hello"].html is None


def test_what_is_stored_reads_back_the_same() -> None:
    found = parse_small_app(SALES)
    stored = stored_small_app(found)

    assert parse_small_app(stored) == found
    assert stored["domains"]["orders"] == {"source": {"file": "sales/orders.csv"}, "format": "csv"}


def test_a_template_has_a_bound() -> None:
    long = {"name": "sales", "templates": {"t": {"subject": "s", "text": "x" * 100_001}}}

    with pytest.raises(InvalidSmallApp, match=r"templates\.t\.text.*at most 100000"):
        parse_small_app(long)
