"""A small client of the HTTP API, sync and async, over httpx.

    with Client("https://minutebook.example", token, app="shop") as minutebook:
        ran = minutebook.run("weekly update", key="deploy-7", wait_s=600)
        print(ran.state)

Each method raises ApiError with the server's problem details, and httpx's own errors if the server
does not answer.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

if TYPE_CHECKING:
    from typing import Self

# The states in which an operation has ended.
ENDED = frozenset(
    {"success", "partial", "failed", "missed", "skipped", "dropped", "cancelled", "handed_over"}
)
# How often to ask for the state of an awaited operation, in seconds.
POLL_S = 1.0
TIMEOUT_S = 30.0
# The most items that a page has.
LARGEST_PAGE = "1000"


class ApiError(Exception):
    """The server refused a request; `problems` has every fault of a document."""

    def __init__(self, status: int, kind: str, detail: str, problems: Sequence[Any]) -> None:
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.detail = detail
        self.problems = tuple(problems)


@dataclass(frozen=True)
class Run:
    """An operation that was asked for, and its state."""

    id: str
    state: str

    @property
    def has_ended(self) -> bool:
        """Whether nothing more happens, unless it is retried."""
        return self.state in ENDED


@dataclass(frozen=True)
class Applied:
    """What a document did: `created`, `changed` or `unchanged`."""

    uid: str
    name: str
    change: str
    revision: int
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Explanation:
    """Why an action ran, or did not run, at an instant."""

    verdict: str
    text: str
    operations: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class _Request:
    method: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    json: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Api:
    """Makes requests and reads their answers; `Client` and `AsyncClient` send them."""

    app: str | None

    def any(self, method: str, path: str, json: Any, params: Mapping[str, str]) -> _Request:
        headers = {"If-Match": params["if_match"]} if "if_match" in params else {}
        rest = {name: value for name, value in params.items() if name != "if_match"}
        return _Request(method, path, {**self._of_app(), **rest}, json, headers)

    def state(self, operation_id: str) -> _Request:
        return _Request("GET", f"/api/operations/{quote(str(operation_id), safe='')}/state")

    def run(self, action: str, user: str | None, key: str | None) -> _Request:
        params = self._of_app() | ({} if user is None else {"user": user})
        headers = {} if key is None else {"Idempotency-Key": key}
        path = f"/api/actions/{quote(action, safe='')}:run"
        return _Request("POST", path, params, headers=headers)

    def apply(self, documents: Sequence[Mapping[str, Any]]) -> _Request:
        return _Request("POST", "/api/actions:apply", self._of_app(), list(documents))

    def explain(self, action: str, at: datetime | str) -> _Request:
        instant = at if isinstance(at, str) else _text_of(at)
        path = f"/api/actions/{quote(action, safe='')}/explain"
        return _Request("GET", path, {**self._of_app(), "at": instant})

    def _of_app(self) -> dict[str, str]:
        return {} if self.app is None else {"app": self.app}


def _text_of(at: datetime) -> str:
    if at.tzinfo is None:
        raise ValueError(f"naive instant {at!r}; give it a time zone")
    return at.isoformat()


def _options(url: str, token: str, timeout_s: float) -> dict[str, Any]:
    token = token.strip()
    if not (token.isascii() and token.isprintable()):
        # httpx would name the whole header in its error.
        raise ValueError("the token holds a line break, or another character that no token has")
    headers = {"Authorization": f"Bearer {token}"}
    return {"base_url": url, "headers": headers, "timeout": timeout_s}


def _sent_as(request: _Request) -> dict[str, Any]:
    body = {} if request.json is None else {"json": request.json}
    return {"params": dict(request.params), "headers": dict(request.headers), **body}


def _value(response: httpx.Response) -> Any:
    """Return the JSON of an answer, None for one without content; raises ApiError."""
    if response.status_code == httpx.codes.NO_CONTENT:
        return None
    try:
        found = response.json()
    except ValueError:
        found = None
        if response.is_success:
            detail = f"{response.url.host} answered without JSON; is it Minutebook's address?"
            raise ApiError(response.status_code, "", detail, ()) from None
    if response.is_success:
        return found
    details = found if isinstance(found, dict) else {}
    kind = str(details.get("type", "")).rpartition(":")[2]
    detail = str(details.get("detail") or f"the server answered {response.status_code}")
    raise ApiError(response.status_code, kind, detail, details.get("problems", ()))


@dataclass(frozen=True)
class _Patience:
    """How long to wait for an operation; None: not at all."""

    wait_s: float | None
    begun: float = field(default_factory=time.monotonic)

    def pause_s(self, ran: Run) -> float | None:
        """Return how long to wait before the next request for its state, None to stop waiting."""
        if self.wait_s is None or ran.has_ended:
            return None
        left_s = self.begun + self.wait_s - time.monotonic()
        return min(POLL_S, left_s) if left_s > 0 else None


@dataclass(frozen=True)
class Page:
    """Items of a list, and the `cursor` of its next page, None for the last one."""

    items: Sequence[Any]
    next: str | None


def _page(response: httpx.Response) -> Page:
    """Return a page: an object with `next`, or a list whose header Link names the next one."""
    found = _value(response)
    if isinstance(found, dict):
        return Page(found["items"], found["next"])
    link = response.links.get("next")
    return Page(found, None if link is None else httpx.URL(link["url"]).params["cursor"])


def _applied(rows: Sequence[Mapping[str, Any]]) -> list[Applied]:
    names = ("uid", "name", "change", "revision")
    return [
        Applied(**{name: row[name] for name in names}, warnings=tuple(row["warnings"]))
        for row in rows
    ]


def _explanation(row: Mapping[str, Any]) -> Explanation:
    return Explanation(row["verdict"], row["text"], tuple(row["operations"]))


class Client:
    """The API of a server, with a token; `app` selects the small app (the tenant).

    Use it as a context manager, or close it. One client may serve several threads.
    """

    def __init__(
        self, url: str, token: str, *, app: str | None = None, timeout_s: float = TIMEOUT_S
    ) -> None:
        self._api = _Api(app)
        self._http = httpx.Client(**_options(url, token, timeout_s))

    def call(self, method: str, path: str, json: Any = None, **params: str) -> Any:
        """Call any endpoint of the API, such as GET /api/actions; return the JSON of its answer.

        It is None for an answer without content, such as that of GET /jobs/next without a job.
        `if_match` is the revision that a change is made to; the other `params` are its query.
        """
        return self._send(self._api.any(method, path, json, params))

    def page(self, path: str, **params: str) -> Page:
        """Return a page of a list, such as that of /api/actions; `cursor` is its place."""
        return _page(self._answer(self._api.any("GET", path, None, params)))

    def each(self, path: str, **params: str) -> Iterator[Any]:
        """Yield the items of a list, such as that of /api/actions, from all its pages."""
        asked = {"limit": LARGEST_PAGE, **params}
        page = self.page(path, **asked)
        yield from page.items
        while page.next is not None:
            page = self.page(path, **{**asked, "cursor": page.next})
            yield from page.items

    def get_operation_state(self, operation_id: str) -> str:
        """Return the state of an operation, `unknown` if it does not exist."""
        return str(self._send(self._api.state(operation_id))["state"])

    def run(
        self,
        action: str,
        *,
        user: str | None = None,
        key: str | None = None,
        wait_s: float | None = None,
    ) -> Run:
        """Run an action now, by its name or uid, once for each `key`.

        With `wait_s` it returns when the operation has ended, or after so many seconds.
        """
        made = self._send(self._api.run(action, user, key))
        ran, patience = Run(made["id"], made["state"]), _Patience(wait_s)
        while (pause_s := patience.pause_s(ran)) is not None:
            threading.Event().wait(pause_s)
            ran = Run(ran.id, self.get_operation_state(ran.id))
        return ran

    def apply(self, documents: Sequence[Mapping[str, Any]]) -> list[Applied]:
        """Create or change actions to their documents, all or none."""
        return _applied(self._send(self._api.apply(documents)))

    def explain(self, action: str, at: datetime | str) -> Explanation:
        """Explain an instant: an aware datetime, or a text that may be in the action's zone."""
        return _explanation(self._send(self._api.explain(action, at)))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _send(self, request: _Request) -> Any:
        return _value(self._answer(request))

    def _answer(self, request: _Request) -> httpx.Response:
        return self._http.request(request.method, request.path, **_sent_as(request))


class AsyncClient:
    """The same as `Client`, for asyncio; `async with` closes it."""

    def __init__(
        self, url: str, token: str, *, app: str | None = None, timeout_s: float = TIMEOUT_S
    ) -> None:
        self._api = _Api(app)
        self._http = httpx.AsyncClient(**_options(url, token, timeout_s))

    async def call(self, method: str, path: str, json: Any = None, **params: str) -> Any:
        """Call any endpoint of the API; see `Client.call`."""
        return await self._send(self._api.any(method, path, json, params))

    async def page(self, path: str, **params: str) -> Page:
        """Return a page of a list; see `Client.page`."""
        return _page(await self._answer(self._api.any("GET", path, None, params)))

    async def each(self, path: str, **params: str) -> AsyncIterator[Any]:
        """Yield the items of a list from all its pages; see `Client.each`."""
        asked = {"limit": LARGEST_PAGE, **params}
        page = await self.page(path, **asked)
        for one in page.items:
            yield one
        while page.next is not None:
            page = await self.page(path, **{**asked, "cursor": page.next})
            for one in page.items:
                yield one

    async def get_operation_state(self, operation_id: str) -> str:
        """Return the state of an operation, `unknown` if it does not exist."""
        return str((await self._send(self._api.state(operation_id)))["state"])

    async def run(
        self,
        action: str,
        *,
        user: str | None = None,
        key: str | None = None,
        wait_s: float | None = None,
    ) -> Run:
        """Run an action now; see `Client.run`."""
        made = await self._send(self._api.run(action, user, key))
        ran, patience = Run(made["id"], made["state"]), _Patience(wait_s)
        while (pause_s := patience.pause_s(ran)) is not None:
            await asyncio.sleep(pause_s)
            ran = Run(ran.id, await self.get_operation_state(ran.id))
        return ran

    async def apply(self, documents: Sequence[Mapping[str, Any]]) -> list[Applied]:
        """Create or change actions to their documents, all or none."""
        return _applied(await self._send(self._api.apply(documents)))

    async def explain(self, action: str, at: datetime | str) -> Explanation:
        """Explain an instant; see `Client.explain`."""
        return _explanation(await self._send(self._api.explain(action, at)))

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def _send(self, request: _Request) -> Any:
        return _value(await self._answer(request))

    async def _answer(self, request: _Request) -> httpx.Response:
        return await self._http.request(request.method, request.path, **_sent_as(request))
