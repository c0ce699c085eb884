import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from data.store.failures import ActionFailures
from data.store.snapshots import Domain, Snapshot
from data.summary import Summary, summarise
from data.summary.bars import Chart, chart_of
from data.summary.history import LONGEST_TREND, Past, Point
from data.summary.key_figures import key_figures
from data.summary.mail import MOST_CARDS, in_order, render_html, render_text
from data.summary.numbers import age, short_number, shown_change, shown_number
from tests.ticks import HOUR, MINUTE

NOW = datetime(2026, 11, 23, 6, 0, tzinfo=UTC)


def make_domain(name: str = "a", rows: int = 3, **columns: Any) -> Domain:
    three = NOW - 3 * HOUR
    shown = Snapshot(UUID(int=1), name, "path", rows, 10, "d", {}, {"columns": columns}, three)
    return Domain(name, {}, shown, shown, NOW - 5 * MINUTE, NOW)


UNPUBLISHED = Domain("b", {}, None, None, None, None)


def number(total: float, filled: int = 2) -> dict[str, Any]:
    return {"filled": filled, "sum": total}


def past_of(*values: dict[str, Any]) -> Past:
    """Return earlier summaries, a week apart, the last a week ago; each by domain."""
    first = NOW - timedelta(weeks=len(values))
    at = [(first + timedelta(weeks=n)).isoformat() for n in range(len(values))]
    return Past(tuple({"at": when, "domains": one} for when, one in zip(at, values, strict=True)))


def make_summary(
    *domains: Domain, title: str = "Shop", past: Past | None = None, **more: Any
) -> Summary:
    before = past or Past()
    parts = summarise(domains, before, NOW)[0]
    watched = NOW - timedelta(days=7)
    return Summary(title, NOW, "Europe/Paris", parts, before.last_at, watched, **more)


def test_the_first_summary_has_nothing_to_compare_with_and_the_next_shows_the_change() -> None:
    (first,), after = summarise([make_domain(amount=number(10))], Past(), NOW)
    (second,), _ = summarise([make_domain(rows=5, amount=number(7))], past_of(after), NOW)

    assert (first.change, first.trend) == (None, None)
    assert after == {"a": {"rows": 3, "sums": {"amount": 10}}}
    assert (second.change, second.figures[0].change, second.has_changed) == (2, -3, True)


def test_the_chart_is_of_the_first_figure_over_the_last_summaries() -> None:
    values = [{"a": {"rows": n, "sums": {"amount": 10 * n}}} for n in (1, 2)]

    parts, _after = summarise([make_domain(amount=number(30))], past_of(*values), NOW)

    trend = parts[0].trend
    assert trend is not None
    assert (trend.label, [point.value for point in trend.points]) == ("amount", [10, 20, 30])
    assert trend.points[-1].at == NOW


def test_what_is_kept_is_bounded() -> None:
    sums = {f"c{n}": n for n in range(4)}
    domains = {f"d{n}": {"rows": n, "sums": sums} for n in range(200)}
    past = Past()

    for n in range(30):
        past = Past.of_checkpoint(past.checkpoint(f"o{n}", NOW, domains), "next")

    assert 1 < len(past.summaries) < LONGEST_TREND - 1
    assert len(past.last) == 200
    assert past.last["d7"]["sums"] == sums
    assert len(json.dumps(past.checkpoint("o", NOW, domains))) < 100_000


def test_another_try_has_the_same_past() -> None:
    kept = past_of({"a": {"rows": 1, "sums": {}}}).checkpoint("mine", NOW, {"a": {"rows": 9}})

    assert Past.of_checkpoint(kept, "mine").last["a"]["rows"] == 1
    assert Past.of_checkpoint(kept, "next").last["a"]["rows"] == 9
    for none in ({}, {"operation_id": "o", "before": {}, "after": {"a": {}}}):
        assert Past.of_checkpoint(none, "next") == Past()


def failure(action: str = "nightly", **more: Any) -> ActionFailures:
    counts = {"failed": 0, "partial": 0, "missed": 0, "error": None} | more
    return ActionFailures(action=action, last_at=NOW - timedelta(hours=1), **counts)


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        (make_summary(), "This small app has no domains, and nothing failed."),
        (make_summary(UNPUBLISHED), "Nothing is published yet, and nothing failed."),
        (make_summary(make_domain()), "Its one domain is published, and nothing failed."),
        (
            make_summary(make_domain(), make_domain("b"), past=past_of({"a": {"rows": 3}})),
            "Both domains are published, none changed since 16 November, and nothing failed.",
        ),
        (
            make_summary(
                make_domain(),
                UNPUBLISHED,
                past=past_of({"a": {"rows": 1}}),
                failures=(failure(failed=2, missed=1), failure("weekly", partial=1)),
            ),
            (
                "1 of 2 domains is published, 1 changed since 16 November, and 4 runs went"
                " wrong (2 failed, 1 partial, 1 missed)."
            ),
        ),
    ],
)
def test_the_first_line_says_how_things_stand(summary: Summary, expected: str) -> None:
    assert render_text(summary).splitlines()[0] == expected
    assert f">{expected}</div>" in render_html(summary)


def test_failures_are_shown_by_action_with_the_time_in_the_apps_zone() -> None:
    summary = make_summary(failures=(failure(failed=2, missed=1, error="no <source>\\nat line 3"),))
    text = render_text(summary)

    assert "23 November 2026, 07:00 (Europe/Paris)" in text
    assert (
        "What went wrong since 16 November 2026, 07:00\n"
        "  nightly: 2 failed, 1 missed, last 23 November 2026, 06:00\n"
        "    no <source>\n"
    ) in text
    page = render_html(summary)
    assert "2 failed" in page
    assert "no &lt;source&gt;" in page


def test_of_many_failures_the_others_are_counted() -> None:
    many = tuple(failure(f"action {n}", failed=1) for n in range(12))

    text = render_text(make_summary(failures=many))

    assert "and 2 more actions" in text
    assert "action 10:" not in text


def test_of_thirty_domains_ten_have_a_card_and_all_are_shown() -> None:
    domains = [make_domain(f"domain {n:02}", rows=n) for n in range(30)]

    page = render_html(make_summary(*domains))

    assert page.count('class="big"') == MOST_CARDS
    assert "20 more domains" in page
    assert all(one.name in page for one in domains)
    assert len(page) < 60_000


def test_where_not_all_have_a_card_what_changed_comes_first() -> None:
    domains = [make_domain(f"domain {n:02}") for n in range(30)]
    past = past_of({f"domain {n:02}": {"rows": 3 - n // 29, "sums": {}} for n in range(30)})

    many = in_order(make_summary(*domains, past=past))
    few = in_order(make_summary(*domains[20:], past=past))

    assert [one.name for one in many[:2]] == ["domain 29", "domain 00"]
    assert [one.name for one in few] == [one.name for one in domains[20:]]


def test_a_chart_is_shown_and_described_in_words() -> None:
    summary = make_summary(make_domain(), past=past_of({"a": {"rows": 1, "sums": {}}}))

    page = render_html(summary)

    assert 'aria-label="rows in the last 2 summaries: from 1 to 3"' in page
    assert re.findall(r"height:(\d+)px", page) == ["24", "72"]
    assert ">16 Nov</td>" in page
    assert "rows in the last 2 summaries: from 1 to 3" in render_text(summary)


def chart(*values: float) -> Chart:
    weeks = len(values) - 1
    return chart_of(
        [Point(NOW - timedelta(weeks=weeks - n), value) for n, value in enumerate(values)]
    )


@pytest.mark.parametrize(
    ("values", "heights"),
    [
        pytest.param((3, 6), [36, 72], id="few"),
        pytest.param((0, 0), [1, 1], id="nothing"),
        pytest.param((1e300, -1e300), [72, 72], id="huge"),
    ],
)
def test_bars_are_relative_to_the_largest(values: tuple[float, ...], heights: list[int]) -> None:
    assert [bar.height for bar in chart(*values).bars] == heights


def test_the_last_bar_is_set_off_and_negative_ones_are_below_the_line() -> None:
    made = chart(-5, 3, -1)

    assert [bar.is_last for bar in made.bars] == [False, False, True]
    assert [bar.is_below for bar in made.bars] == [True, False, True]
    assert (made.has_below, made.empty, made.first) == (True, 3, "9 Nov")


def test_narrow_bars_have_their_numbers_at_the_ends() -> None:
    made = chart(*range(1, 9))

    assert {bar.number for bar in made.bars} == {""}
    assert (made.first, made.last) == ("5 Oct: 1", "23 Nov: 8")


def figures(**columns: Any) -> list[str]:
    return [figure.column for figure in key_figures({"columns": columns}, {})]


def test_the_first_four_columns_are_chosen_but_for_keys_codes_and_coordinates() -> None:
    keys = ("order_id", "orderId", "zip", "Year", "lat", "item-no")
    columns = ("paid", "depth", "price", "amount", "weight")

    assert figures(**dict.fromkeys((*keys, *columns), number(9))) == [*columns[:4]]
    assert figures(a={"filled": 0, "sum": None}, b={"filled": 3, "sum": None}) == []
    assert list(key_figures({}, {})) == []


@pytest.mark.parametrize(
    ("column", "before", "expected"),
    [("unitPrice", 4, (True, 5, 1)), ("amount", 60, (False, 50, -10))],
)
def test_prices_and_rates_show_their_mean(
    column: str, before: float, expected: tuple[bool, float, float]
) -> None:
    (figure,) = key_figures({"columns": {column: number(50, 10)}}, {column: before, "gone": 1})

    assert (figure.is_mean, figure.value, figure.change) == expected


def test_html_fetches_nothing_and_escapes_what_came_from_outside() -> None:
    column: dict[str, Any] = {"<script>alert(1)</script>": number(3)}
    failures = (failure(failed=1),)

    page = render_html(make_summary(make_domain("<b>", **column), title="<i>", failures=failures))

    assert not re.findall(r"(?i)https?://|@import|url\(|<script|<link|src=", page)
    assert "prefers-color-scheme: dark" in page
    assert "<b>&lt;" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
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
    shown = {
        1234567: "1,234,567", 2.5: "2.50", 3.001: "3", -4: "−4", 0: "0",  # noqa: RUF001
        0.004: "0.004", -0.0001: "−0.0001", 1.5e9: "1,500,000,000",  # noqa: RUF001
        -9.87e20: "−9.87e+20", 10**18: "1.00e+18",  # noqa: RUF001
    }  # fmt: skip

    assert {n: shown_number(n) for n in shown} == shown
    assert [shown_change(n) for n in (0, 1e-12, 1500, -2.5)] == [
        "no change", "no change", "+1,500", "−2.50",  # noqa: RUF001
    ]  # fmt: skip
    short = {0: "0", 7: "7", 1234: "1.23k", -34_000_000: "−34M", 2e17: "2e17"}  # noqa: RUF001
    assert {n: short_number(n) for n in short} == short
