"""One request: what it asks for, its answer, or why it got none."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

import httpx

from runtime.egress.addresses import NoAddress
from runtime.egress.deadline import Deadline
from runtime.egress.guard import guarded_client
from runtime.egress.http_errors import reason_of

# It logs whole URLs at INFO.
logging.getLogger("httpx").setLevel(logging.WARNING)
Response = httpx.Response
MOST_REDIRECTS = 5
# A compressed answer has a different ETag, and its size is not the bounded one.
AGENT = {"User-Agent": "minutebook", "Accept-Encoding": "identity"}


class RequestFailed(Exception):
    """There is no answer; `permanent`: a retry cannot help, `is_late`: the deadline was over."""

    def __init__(self, text: str, *, permanent: bool = False, is_late: bool = False) -> None:
        self.permanent, self.is_late = permanent, is_late
        super().__init__(text)


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for; its own headers may be secrets, and `name` stands for a secret URL.

    `allow_private` is whether it may go to a private address, and `setting` the one that says so.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    method: str = "GET"
    body: bytes | None = None
    allow_private: bool = False
    setting: str = ""

    @property
    def shown(self) -> str:
        """The display name, without secrets."""
        return self.name or shown_url(self.url)

    @property
    def may_be_redirected(self) -> bool:
        """Whether it carries neither a body nor a secret, which another server would get."""
        return self.body is None and not self.headers and self.name is None


@contextmanager
def opened(
    request: Request, deadline: Deadline, own: Mapping[str, str] = AGENT
) -> Iterator[httpx.Response]:
    """Yield the answer, its body unread; `own` are our headers, none of them secret.

    Raises RequestFailed, also for what the block meets while it reads the body.
    """
    client = guarded_client(deadline, allow_private=request.allow_private, setting=request.setting)
    try:
        with deadline, client, closing(_answer(client, request, own)) as response:
            yield response
            if deadline.is_over:
                raise httpx.ReadTimeout("")
    except NoAddress as error:
        raise RequestFailed(_shown(request, str(error)), permanent=error.permanent) from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        if deadline.is_over or isinstance(error, httpx.TimeoutException):
            late = f"gave no answer within {deadline.seconds:g} s"
            raise RequestFailed(late, is_late=True) from None
        is_permanent = isinstance(error, httpx.InvalidURL)
        raise RequestFailed(reason_of(error), permanent=is_permanent) from None


def status_of(request: Request, within_s: float) -> int:
    """Return the status of the answer, whose body is never read. Raises RequestFailed."""
    with opened(request, Deadline(within_s)) as response:
        return response.status_code


def shown_url(url: str) -> str:
    """Return `url` without user, password, query and fragment, which may hold secrets."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        return "the URL"
    return str(parsed.copy_with(username=None, password=None, query=None, fragment=None))


def without(url: str, text: str) -> str:
    """Return the text with each part of the URL replaced by `…`."""
    parts = urlsplit(url)
    pieces = {url, parts.netloc, parts.hostname, parts.path, parts.query, parts.fragment}
    pieces |= {parts.username, parts.password, *parts.path.split("/"), *parts.query.split("&")}
    known = {piece for piece in pieces if piece and len(piece) > 1}
    for piece in sorted(known | {unquote(one) for one in known}, key=len, reverse=True):
        text = text.replace(piece, "…")
    return text


def _shown(request: Request, text: str) -> str:
    return text if request.name is None else without(request.url, text)


def _answer(client: httpx.Client, request: Request, own: Mapping[str, str]) -> httpx.Response:
    """Return the answer after the redirects that may be followed, each to a checked address."""
    headers = {**request.headers, **own}
    try:
        asked = client.build_request(
            request.method, request.url, headers=headers, content=request.body
        )
        # httpx's own following reads the whole body of every redirect.
        for _hop in range(MOST_REDIRECTS + 1):
            response = client.send(asked, stream=True)
            if response.next_request is None or not request.may_be_redirected:
                return response
            response.close()
            asked = response.next_request
    except (OSError, ValueError) as error:
        is_permanent = isinstance(error, ValueError)
        raise RequestFailed(reason_of(error), permanent=is_permanent) from None
    raise RequestFailed(f"redirects more than {MOST_REDIRECTS} times")
