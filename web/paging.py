"""Lists that come in pages: their parameters, and the header that names the next page."""

from typing import Annotated, Any, TypeVar

from fastapi import Query, Request, Response

from views.view import LARGEST_PAGE, Page, View

PAGE = 50
Limit = Annotated[int, Query(ge=1, le=LARGEST_PAGE, description="The most of a page.")]
Cursor = Annotated[str | None, Query(description="`next` of the page before.")]
LinkedCursor = Annotated[
    str | None, Query(description="The place of a page, as the header Link of the one before says.")
]
Item = TypeVar("Item", bound=View)
# For the schema of an endpoint whose answer is a list.
LINK = 'The next page, if there is one, in the form of RFC 8288: `<?cursor=…>; rel="next"`.'
LINKED: dict[int | str, dict[str, Any]] = {
    200: {"headers": {"Link": {"description": LINK, "schema": {"type": "string"}}}}
}


def linked(request: Request, response: Response, page: Page[Item]) -> tuple[Item, ...]:
    """Return the items of a page; the header Link names the next one, relative to this one."""
    if page.next is not None:
        following = request.url.include_query_params(cursor=page.next)
        response.headers["Link"] = f'<?{following.query}>; rel="next"'
    return page.items
