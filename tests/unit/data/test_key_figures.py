from typing import Any

from data.summary.key_figures import key_figures


def number(total: float, filled: int = 10, least: float = 1, most: float = 90) -> dict[str, Any]:
    """Return the figures of a numeric column."""
    return {"kind": "number", "filled": filled, "min": least, "max": most, "sum": total}


def chosen(**columns: Any) -> list[str]:
    """Return the columns chosen as key figures, in order."""
    return [figure.column for figure in key_figures({"columns": columns}, {})]


def test_keys_codes_and_coordinates_are_passed_over() -> None:
    columns = {name: number(9) for name in ("order_id", "orderId", "zip", "Year", "lat", "item-no")}

    assert chosen(**columns, paid=number(4), word={"kind": "text", "filled": 3}) == ["paid"]


def test_numbers_in_a_row_are_a_key_whatever_their_name() -> None:
    assert chosen(ref=number(55, 10, 1, 10), depth=number(56, 10, 1, 10)) == ["depth"]


def test_amounts_come_before_others_and_flags_last() -> None:
    columns = {
        "is_paid": number(5, most=1, least=0), "depth": number(3), "unit_price": number(8),
        "amount": number(7), "weight": number(2), "total_sales": number(6),
    }  # fmt: skip

    assert chosen(**columns) == ["amount", "total_sales", "unit_price", "depth"]


def test_prices_and_rates_show_their_mean() -> None:
    (figure,) = key_figures({"columns": {"unitPrice": number(50, 10)}}, {"unitPrice": 4})

    assert (figure.is_mean, figure.value, figure.change) == (True, 5, 1)


def test_the_change_is_that_of_the_value_shown() -> None:
    (figure,) = key_figures({"columns": {"amount": number(50)}}, {"amount": 60, "gone": 1})

    assert (figure.is_mean, figure.value, figure.change) == (False, 50, -10)


def test_columns_without_numbers_are_no_figures() -> None:
    empty = {"kind": "number", "filled": 0, "min": None, "max": None, "sum": None}

    assert chosen(a=empty, b={"kind": "number", "filled": 0, "min": 0, "max": 0, "sum": 0}) == []
    assert list(key_figures({}, {})) == []
