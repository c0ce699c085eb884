"""What may go wrong when the server is asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from minutebook import actions
from minutebook.client import ApiError

NOT_FOUND = 404
# Of a document that no server would accept.
INVALID = 422


class Unavailable(Exception):
    """The server could not be asked, or refused; the text says why."""

    def __init__(self, why: str, status: int = 0, *, may_be_done: bool = False) -> None:
        super().__init__(why)
        # That of the answer, 0 without one.
        self.status = status
        # Whether the server may have done it, or may do it yet.
        self.may_be_done = may_be_done


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raise Unavailable in place of what a client raises."""
    try:
        yield
    except ApiError as error:
        is_open = error.status >= httpx.codes.INTERNAL_SERVER_ERROR
        raise Unavailable(error.detail, error.status, may_be_done=is_open) from None
    except httpx.HTTPError as error:
        is_open = not isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout))
        raise Unavailable(f"The server does not answer: {error}", may_be_done=is_open) from None
    except (actions.NotConfigured, httpx.InvalidURL) as error:
        raise Unavailable(str(error)) from None
    # No JSON has NaN, nor half of a character.
    except ValueError as error:
        raise Unavailable(f"The document cannot be sent: {error}", INVALID) from None
