from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from models.store.snapshots import Domain, Snapshot
from small_apps.summary import Summary, age, summarise
from small_apps.summary_page import render_html, render_text, shown_change, shown_number

NOW = datetime(2026, 11, 23, 6, 0, tzinfo=UTC)


def make_domain(name: str = "a", rows: int = 3, **columns: Any) -> Domain:
    """Return a published domain with the columns' figures."""
    shown = Snapshot(
        UUID(int=1), name, "path", rows, 10, "d", {}, {"columns": columns}, NOW - timedelta(hours=3)
    )
    return Domain(name, {}, shown, shown, NOW - timedelta(minutes=5), NOW)


def number(total: float, filled: int = 2) -> dict[str, Any]:
    """Return the figures of a numeric column."""
    return {"kind": "number", "filled": filled, "min": 1, "max": total, "sum": total}


def make_summary(*domains: Domain, title: str = "Shop", before: Any = None) -> Summary:
    """Return the summary of `domains`."""
    return Summary(title, NOW, "Europe/Paris", summarise(domains, before or {})[0])


def test_the_first_summary_has_nothing_to_compare_with() -> None:
    parts, after = summarise([make_domain(amount=number(10))], {})

    assert parts[0].change is None
    assert after == {"a": {"rows": 3, "sums": {"amount": 10}}}


def test_the_next_one_tells_the_change() -> None:
    _parts, before = summarise([make_domain(amount=number(10))], {})

    parts, _after = summarise([make_domain(rows=5, amount=number(7))], before)

    assert parts[0].change == 2
    assert parts[0].figures[0].change == -3


def test_keys_are_no_key_figures() -> None:
    domain = make_domain(order_id=number(9), word={"kind": "text", "filled": 3}, paid=number(4))

    parts, _after = summarise([domain], {})

    assert [figure.column for figure in parts[0].figures] == ["paid"]


def test_what_is_not_published_is_said_to_be_so() -> None:
    domain = Domain("a", {}, None, None, None, None)

    text = render_text(make_summary(domain))

    assert "a\n  nothing published yet" in text


def test_text_tells_the_local_time() -> None:
    assert "23 November 2026, 07:00 (Europe/Paris)" in render_text(make_summary())


def test_html_escapes_what_came_from_outside() -> None:
    column: dict[str, Any] = {"<script>alert(1)</script>": number(3)}

    page = render_html(make_summary(make_domain("<b>", **column), title="<i>"))

    assert "<script>" not in page
    assert "<b>&lt;" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<h1" in page
    assert "&lt;i&gt;" in page


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-5, "just now"), (59, "just now"), (60, "1 minute ago"), (7_199, "1 hour ago"),
        (172_800, "2 days ago"),
    ],
)  # fmt: skip
def test_age_in_words(seconds: int, expected: str) -> None:
    assert age(NOW - timedelta(seconds=seconds), NOW) == expected


def test_numbers_for_people() -> None:
    assert [shown_number(n) for n in (1234567, 2.5, 3.001, -4)] == ["1,234,567", "2.50", "3", "-4"]
    assert [shown_change(n) for n in (0, 1500, -2.5)] == ["no change", "+1,500", "−2.50"]  # noqa: RUF001
