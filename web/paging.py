"""Lists that come in pages: their parameters, the header that names the next page, and files."""

import csv
import io
import json
from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Query, Request, Response

from services.view import LARGEST_PAGE, Page, View, as_json

Limit = Annotated[int, Query(ge=1, le=LARGEST_PAGE, description="The most of a page.")]
LinkedCursor = Annotated[
    str | None, Query(description="The place of a page, as the header Link of the one before says.")
]
Item = TypeVar("Item", bound=View)
# For the schema of an endpoint whose answer is a list.
LINK = 'The next page, if there is one, in the form of RFC 8288: `<?cursor=…>; rel="next"`.'
LINKED: dict[int | str, dict[str, Any]] = {
    200: {"headers": {"Link": {"description": LINK, "schema": {"type": "string"}}}}
}


class LinkedPage:
    """A page that a request asks for; its answer is a list, and the header Link names the next."""

    def __init__(
        self,
        request: Request,
        response: Response,
        limit: Limit = LARGEST_PAGE,
        cursor: LinkedCursor = None,
    ) -> None:
        self._request, self._response = request, response
        self.limit, self.cursor = limit, cursor

    def items(self, page: Page[Item]) -> tuple[Item, ...]:
        """Return the items of the page; the next one is named relative to this one."""
        self.linked(self._response, page.next)
        return page.items

    def linked(self, response: Response, following: str | None) -> Response:
        """Return a response that names the next page, if there is one."""
        if following is not None:
            address = self._request.url.include_query_params(cursor=following)
            response.headers["Link"] = f'<?{address.query}>; rel="next"'
        return response


Linked = Annotated[LinkedPage, Depends()]

# A spreadsheet would take a cell that begins so for a formula.
FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def file_of(items: Sequence[View], name: str, form: str, columns: Sequence[str]) -> Response:
    """Return a list as a file to keep: JSON with all that is known, or CSV with some columns."""
    rows = [as_json(one) for one in items]
    text = json.dumps(rows, indent=1) if form == "json" else _csv(rows, columns)
    kind = "application/json" if form == "json" else "text/csv; charset=utf-8"
    attached = {"Content-Disposition": f'attachment; filename="{name}.{form}"'}
    return Response(text.encode("utf-8", "backslashreplace"), headers=attached, media_type=kind)


def _csv(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> str:
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerow(columns)
    writer.writerows([_cell(row[column]) for column in columns] for row in rows)
    return written.getvalue()


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(FORMULAS) else text
