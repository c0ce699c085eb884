"""Make a table fit a terminal: one line for each row, whatever its width."""

import re
from collections.abc import Sequence

# What stands between two columns.
GAP = 2
SHORTEST_ID = 8
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_INSTANT = re.compile(r"(\d{4})-(\d\d-\d\d)T(\d\d:\d\d):\d\dZ")
Column = tuple[str, ...]


def width_of(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def fitted(lines: Sequence[Sequence[str]], width: int, year: int) -> list[list[str]]:
    """Return the lines of a table, headings first, cut to what fits into `width`.

    Ids are cut to what tells them apart, then instants lose their seconds, and the year if it is
    `year`, the present one; then the widest cells end in `…`.
    """
    columns: list[Column] = list(zip(*lines, strict=True))
    for shortened in (_without_ends, lambda column: _to_the_minute(column, year)):
        if _total(columns) > width:
            columns = [(column[0], *shortened(column[1:])) for column in columns]
    most = _most(columns, width)
    return [[cut(text, most) for text in line] for line in zip(*columns, strict=True)]


def cut(text: str, most: int) -> str:
    """Return a text that takes at most so many columns."""
    if width_of(text) <= most:
        return text
    if text.isascii():
        return text[: most - 1] + "…"
    from rich.cells import set_cell_size

    return set_cell_size(text, most - 1) + "…"


def _total(columns: Sequence[Column]) -> int:
    widths = [max(map(width_of, column)) for column in columns]
    return sum(widths) + GAP * (len(widths) - 1)


def _without_ends(cells: Column) -> Column:
    """Return ids cut to the shortest prefixes that tell them apart; other cells unchanged."""
    ids = {cell for cell in cells if _ID.fullmatch(cell)}
    length = SHORTEST_ID
    while len({one[:length] for one in ids}) < len(ids):
        length += 1
    return tuple(cell[:length] if cell in ids else cell for cell in cells)


def _to_the_minute(cells: Column, year: int) -> Column:
    def shown(found: re.Match[str]) -> str:
        day = found[2] if found[1] == str(year) else f"{found[1]}-{found[2]}"
        return f"{day} {found[3]}Z"

    return tuple(_INSTANT.sub(shown, cell) for cell in cells)


def _most(columns: Sequence[Column], width: int) -> int:
    """Return the width to which the widest cells are cut."""
    widths = [max(map(width_of, column)) for column in columns]
    room = width - GAP * (len(widths) - 1)

    def fits(most: int) -> bool:
        return sum(min(one, most) for one in widths) <= room

    return next((most for most in range(max(widths), 1, -1) if fits(most)), 1)
