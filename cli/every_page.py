"""Lists that come in pages, read to their ends."""

from collections.abc import Callable
from typing import Any, TypeVar

from cli.arguments import Door
from views.view import LARGEST_PAGE, Page, View

Item = TypeVar("Item", bound=View)


def every(
    opened: Door, function: Callable[..., Page[Item]], most: int | None = None, **options: Any
) -> tuple[Item, ...]:
    """Return what all pages of a list have, or its first `most`."""
    found: list[Item] = []
    cursor = None
    while True:
        limit = LARGEST_PAGE if most is None else min(most - len(found), LARGEST_PAGE)
        page = opened.ask(function, limit=limit, cursor=cursor, **options)
        found += page.items
        cursor = page.next
        if cursor is None or len(found) == most:
            return tuple(found)
