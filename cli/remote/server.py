"""A server of the HTTP API: it answers what commands ask, as an installation here does."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Concatenate, ParamSpec, TypeVar, cast, get_origin

import httpx
from pydantic import TypeAdapter, ValidationError

from cli.remote.answers import error_of, not_ours, page_text
from cli.remote.requests import Function, Request, arguments_of, request_of
from models.errors import SchedulerError
from runtime.egress.guard import authorities
from services.apps import Apps, list_apps
from services.installation import Installation
from services.lookup import unknown_app
from services.verbs import VERBS

P = ParamSpec("P")
Answer = TypeVar("Answer")
CONNECT_S = 10.0
# The longest silence of a server that works on a request.
TIMEOUT_S = 120.0
DEFAULT_APP = "default"


class ServerAway(SchedulerError):
    """The server did not answer."""


@dataclass
class Remote:
    """The HTTP API at an address, with a token; certificates are verified.

    `app` is the small app of the command; None for that of the token, or `default`.
    """

    url: str
    token: str = field(repr=False)
    app: str | None = None
    # How often to ask whether something has ended, in seconds.
    poll_s = 1.0

    @cached_property
    def _http(self) -> httpx.Client:
        return httpx.Client(
            base_url=self.url,
            verify=authorities(),
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=httpx.Timeout(TIMEOUT_S, connect=CONNECT_S),
            follow_redirects=False,
        )

    def close(self) -> None:
        """Close the connections."""
        if "_http" in self.__dict__:
            self._http.close()

    def call(
        self,
        function: Callable[Concatenate[Installation, P], Answer],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Answer:
        """Return what the function would return on the server's machine; raises its errors."""
        request = self._request(function, arguments_of(function, *args, **kwargs))
        kind = function.__annotations__["return"]
        if get_origin(cast(Any, kind)) is Iterator:
            # What the function opens, line by line.
            return cast(Answer, self._rows(request))
        return cast(Answer, self._value(request, kind, is_linked=VERBS[function].pages is not None))

    def _request(self, function: Function, given: Mapping[str, Any]) -> Request:
        """Return the request; raises NotFound for another small app than the command's."""
        verb = VERBS[function]
        argument = next((one for one, name in verb.names.items() if name == "app"), "app")
        named = given.get(argument) if verb.is_of_app else None
        if named is not None and self.app not in {None, named}:
            raise unknown_app(named)
        app = self.app
        if app is None and verb.is_of_app and named is None:
            app = self._own_app()
        return request_of(function, given, app)

    def _own_app(self) -> str:
        """Return the token's small app, or `default`, which a token of the installation may see."""
        # Two are enough to know that there are several.
        seen = self._value(request_of(list_apps, {"limit": 2}, None), Apps)
        names = [one.name for one in seen.root]
        return DEFAULT_APP if len(names) != 1 else str(names[0])

    def _value(self, request: Request, kind: Any, *, is_linked: bool = False) -> Any:
        with self._sent(request) as response:
            response.read()
            if not response.is_success:
                raise error_of(response, request.places)
            text = page_text(response) if is_linked else response.content
            try:
                return TypeAdapter(kind).validate_json(text)
            except ValidationError:
                raise not_ours(response) from None

    @contextmanager
    def _rows(self, request: Request) -> Iterator[Iterator[Any]]:
        with self._sent(request) as response:
            if not response.is_success:
                response.read()
                raise error_of(response)
            yield _lines(response)

    @contextmanager
    def _sent(self, request: Request) -> Iterator[httpx.Response]:
        """Send a request; raises ServerAway, also while the answer is read."""
        try:
            with self._http.stream(
                request.method,
                request.path,
                params=list(request.params),
                content=request.content,
                headers=request.headers,
            ) as response:
                yield response
        except (httpx.RequestError, httpx.StreamError, httpx.InvalidURL) as error:
            raise ServerAway(f"{self.url} does not answer: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, httpx.TimeoutException):
        return text or "it took too long"
    return text or type(error).__name__


def _lines(response: httpx.Response) -> Iterator[Any]:
    """Yield the JSON of each line; rows may hold other characters that end a line in Unicode."""
    adapter: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])
    rest = b""
    for some in response.iter_bytes():
        *whole, rest = (rest + some).split(b"\n")
        for line in whole:
            try:
                yield adapter.validate_json(line)
            except ValidationError:
                raise not_ours(response) from None
