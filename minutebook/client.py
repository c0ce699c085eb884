"""A small client of the HTTP API, over httpx.

    with Client("https://minutebook.example", token, app="shop") as minutebook:
        ran = minutebook.run("weekly update", key="deploy-7", wait_s=600)
        print(ran.state)

Each method raises ApiError with the server's problem details, and httpx's own errors if the server
does not answer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
NONE: Mapping[str, str] = {}


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


def path_of(action: str) -> str:
    """Return the path of an action, by its name or uid."""
    return f"/api/actions/{quote(action, safe='')}"


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


class Client:
    """The API of a server, with a token; `app` selects the small app (the tenant).

    Use it as a context manager, or close it. One client may serve several threads.
    """

    def __init__(
        self, url: str, token: str, *, app: str | None = None, timeout_s: float = TIMEOUT_S
    ) -> None:
        self._of_app = {} if app is None else {"app": app}
        self._http = httpx.Client(**_options(url, token, timeout_s))

    def call(self, method: str, path: str, json: Any = None, **params: str) -> Any:
        """Call any endpoint of the API, such as GET /api/actions; return the JSON of its answer.

        It is None for an answer without content, such as that of GET /jobs/next without a job.
        `if_match` is the revision that a change is made to; the other `params` are its query.
        """
        headers = {"If-Match": params["if_match"]} if "if_match" in params else {}
        rest = {name: value for name, value in params.items() if name != "if_match"}
        return self._send(method, path, json, params=rest, headers=headers)

    def page(self, path: str, **params: str) -> Page:
        """Return a page of a list, such as that of /api/actions; `cursor` is its place."""
        return _page(self._answer("GET", path, params=params))

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
        path = f"/api/operations/{quote(str(operation_id), safe='')}/state"
        return str(self._send("GET", path)["state"])

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
        params = {} if user is None else {"user": user}
        headers = {} if key is None else {"Idempotency-Key": key}
        made = self._send("POST", f"{path_of(action)}:run", params=params, headers=headers)
        ran, ends_s = Run(made["id"], made["state"]), time.monotonic() + (wait_s or 0)
        while not ran.has_ended and (left_s := ends_s - time.monotonic()) > 0:
            threading.Event().wait(min(POLL_S, left_s))
            ran = Run(ran.id, self.get_operation_state(ran.id))
        return ran

    def apply(self, documents: Sequence[Mapping[str, Any]]) -> list[Applied]:
        """Create or change actions to their documents, all or none."""
        names = ("uid", "name", "change", "revision")
        return [
            Applied(**{name: row[name] for name in names}, warnings=tuple(row["warnings"]))
            for row in self._send("POST", "/api/actions:apply", list(documents))
        ]

    def explain(self, action: str, at: datetime | str) -> Explanation:
        """Explain an instant: an aware datetime, or a text that may be in the action's zone."""
        instant = at if isinstance(at, str) else _text_of(at)
        row = self._send("GET", f"{path_of(action)}/explain", params={"at": instant})
        return Explanation(row["verdict"], row["text"], tuple(row["operations"]))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _send(self, method: str, path: str, json: Any = None, **more: Mapping[str, str]) -> Any:
        return _value(self._answer(method, path, json, **more))

    def _answer(
        self,
        method: str,
        path: str,
        json: Any = None,
        params: Mapping[str, str] = NONE,
        headers: Mapping[str, str] = NONE,
    ) -> httpx.Response:
        body = {} if json is None else {"json": json}
        asked = {**self._of_app, **params}
        return self._http.request(method, path, params=asked, headers=headers, **body)
