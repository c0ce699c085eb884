"""Lists that come in pages: their parameters and the header that names the next page."""

from typing import Annotated, Any, TypeVar

from fastapi import Depends, Query, Request, Response

from services.view import LARGEST_PAGE, Page, View

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
