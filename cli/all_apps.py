"""Whole lists, of one small app or of all that the user may see."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

import typer

from cli.arguments import Door, existing, of
from cli.render import Table, print_line, print_lines, print_warning, show, text_of
from runtime.visible import visible_json
from views.finding import check_all_apps
from views.view import LARGEST_PAGE, Listing, Page, View, as_json

Item = TypeVar("Item", bound=View)


def show_list(
    context: typer.Context,
    read: Callable[[Door], Listing[Any]],
    *,
    all_apps: bool,
) -> None:
    """Print what `read` lists; with `all_apps` for every small app, with its name in each row."""
    opened = existing(context)
    if not all_apps:
        show(context, read(opened))
        return
    from views import apps

    invocation = of(context)
    check_all_apps(invocation, all_apps)
    for note in invocation.notes:
        print_warning(note)
    names = [one.name for one in every(opened, apps.list_apps)]
    found = {name: read(opened.seen_in(name)) for name in names}
    if invocation.as_json:
        rows = [{"app": name, **row} for name, one in found.items() for row in as_json(one)]
        print_line(visible_json(json.dumps(rows, indent=2, ensure_ascii=False)), is_safe=True)
    else:
        print_lines([_table(found)])


def _table(found: dict[str, Listing[Any]]) -> Table:
    tables = {
        name: line
        for name, one in found.items()
        for line in text_of(one)
        if isinstance(line, Table)
    }
    headings = next((one.headings for one in tables.values()), ())
    rows = [(name, *row) for name, one in tables.items() for row in one.rows]
    return Table(("APP", *headings), rows)


def every(
    opened: Door, function: Callable[..., Page[Item]], most: int | None = None, **options: Any
) -> tuple[Item, ...]:
    """Return the items of all pages of a list, or the first `most`."""
    found: list[Item] = []
    cursor = None
    while True:
        limit = LARGEST_PAGE if most is None else min(most - len(found), LARGEST_PAGE)
        page = opened.ask(function, limit=limit, cursor=cursor, **options)
        found += page.items
        cursor = page.next
        if cursor is None or len(found) == most:
            return tuple(found)
