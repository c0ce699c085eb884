"""The parameters of lists that come in pages."""

from typing import Annotated

from fastapi import Query

from views.view import LARGEST_PAGE

PAGE = 50
Limit = Annotated[int, Query(ge=1, le=LARGEST_PAGE, description="The most of a page.")]
Cursor = Annotated[str | None, Query(description="`next` of the page before.")]
