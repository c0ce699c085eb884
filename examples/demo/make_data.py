"""Make the demo's data: orders of a small bicycle shop, and the stock in its three shops.

A fixed seed gives the same bytes everywhere: `python make_data.py [FOLDER]`. Domain `a` holds the
orders of one year, domain `b` the stock of each article in each shop.
"""

import csv
import random
import sys
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

SEED = 20261123
FIRST_DAY = date(2025, 11, 24)
DAYS = 364
SHOPS = ("Lyon", "Paris", "Nantes")
ARTICLES = tuple(
    (f"{kind} {size}", price)
    for kind, price in (
        ("city bike", 540_00),
        ("road bike", 1_290_00),
        ("child's bike", 230_00),
        ("helmet", 49_90),
        ("lock", 34_50),
        ("lamp", 22_90),
        ("tyre", 18_00),
        ("inner tube", 6_50),
        ("saddle", 39_00),
        ("basket", 27_80),
    )
    for size in ("S", "M", "L", "XL")
)
COLOURS = (
    "black", "white", "red", "blue", "green", "yellow", "grey", "orange", "silver", "teal",
    "brown", "purple", "olive", "navy", "cream", "rose", "amber", "copper", "mint", "sand",
)  # fmt: skip

Row = tuple[object, ...]


def orders(chance: random.Random) -> Iterator[Row]:
    """Yield the header and the orders, day by day; summer sells more than winter."""
    yield ("order_id", "ordered_on", "shop", "article", "quantity", "unit_price", "amount")
    number = 10_000
    for offset in range(DAYS):
        day = FIRST_DAY + timedelta(days=offset)
        busy = 6 + 5 * (4 <= day.month <= 9) + 3 * (day.weekday() == 5)
        for _order in range(chance.randint(busy - 3, busy + 3)):
            number += 1
            article, price = chance.choice(ARTICLES)
            quantity = chance.choice((1, 1, 1, 1, 2, 2, 3))
            yield (
                number,
                day.isoformat(),
                chance.choice(SHOPS),
                article,
                quantity,
                euros(price),
                euros(price * quantity),
            )


def stock(chance: random.Random) -> Iterator[Row]:
    """Yield the header and the stock of each article and colour in each shop."""
    yield ("shop", "article", "colour", "in_stock", "reorder_at", "value")
    for shop in SHOPS:
        for article, price in ARTICLES:
            for colour in COLOURS:
                count = max(0, round(chance.gauss(9, 5)))
                yield (shop, article, colour, count, 4, euros(count * price * 6 // 10))


def euros(cents: int) -> str:
    """Return an amount with two decimals."""
    return f"{cents // 100}.{cents % 100:02}"


def write(folder: Path) -> None:
    """Write `a.csv` and `b.csv` into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("a", orders), ("b", stock)):
        chance = random.Random(f"{SEED} {name}")  # noqa: S311 - a demo, not a secret
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream, lineterminator="\n").writerows(rows(chance))


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "data")
