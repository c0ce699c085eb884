from typing import Any

from data.summary.key_figures import key_figures


def number(total: float, filled: int = 10) -> dict[str, Any]:
    return {"filled": filled, "sum": total}


def chosen(**columns: Any) -> list[str]:
    return [figure.column for figure in key_figures({"columns": columns}, {})]


def test_keys_codes_and_coordinates_are_passed_over() -> None:
    columns = {name: number(9) for name in ("order_id", "orderId", "zip", "Year", "lat", "item-no")}

    assert chosen(**columns, paid=number(4)) == ["paid"]


def test_the_first_four_columns_are_chosen() -> None:
    columns = {name: number(9) for name in ("paid", "depth", "price", "amount", "weight")}

    assert chosen(**columns) == ["paid", "depth", "price", "amount"]


def test_prices_and_rates_show_their_mean() -> None:
    (figure,) = key_figures({"columns": {"unitPrice": number(50, 10)}}, {"unitPrice": 4})

    assert (figure.is_mean, figure.value, figure.change) == (True, 5, 1)


def test_the_change_is_that_of_the_value_shown() -> None:
    (figure,) = key_figures({"columns": {"amount": number(50)}}, {"amount": 60, "gone": 1})

    assert (figure.is_mean, figure.value, figure.change) == (False, 50, -10)


def test_columns_without_numbers_are_no_figures() -> None:
    assert chosen(a={"filled": 0, "sum": None}, b={"filled": 3, "sum": None}) == []
    assert list(key_figures({}, {})) == []
