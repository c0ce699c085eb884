"""What stands before every endpoint: bounds of its body, and the headers of its answer."""

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from web.problems import ARRIVES_WITHIN_S, LATE, BodyTooLarge, BodyTooSlow

MIB = 2**20
FROM_PROXY = "minutebook.from_proxy"
# What a part of a path may hold as it is, beside letters and digits.
UNQUOTED = "!$&'()*+,:;=@"


class BoundedBodies:
    """Middleware that bounds the body of each request in size and in the time it takes to come."""

    def __init__(self, app: ASGIApp, most_mb: int) -> None:
        self._app = app
        self._most_mb = most_mb

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        end = asyncio.get_running_loop().time() + ARRIVES_WITHIN_S
        left = self._most_mb * MIB
        is_whole = False

        async def receive_bounded() -> Message:
            nonlocal is_whole, left
            if is_whole:
                return await receive()
            try:
                async with asyncio.timeout_at(end):
                    message = await receive()
            except TimeoutError:
                raise BodyTooSlow(LATE) from None
            left -= len(message.get("body", b""))
            if left < 0:
                raise BodyTooLarge(
                    f"the body is larger than {self._most_mb} MiB; send less at once"
                )
            is_whole = not message.get("more_body", False)
            return message

        await self._app(scope, receive_bounded, send)


class BehindProxies(ProxyHeadersMiddleware):
    """Takes the client's address from the proxies that are named, and notes that one sent it."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        peer = scope.get("client")
        if peer is not None:
            # So `::` names a client that came by IPv4.
            peer = scope["client"] = (peer[0].removeprefix("::ffff:"), peer[1])
        # Now, because the address of the client is about to stand in its place.
        scope[FROM_PROXY] = peer is not None and peer[0] in self.trusted_hosts
        await super().__call__(scope, receive, send)


class QuotedPath:
    """Lets endpoints be found by the path as it was sent, so that `%2F` in a name is no border.

    `web.routing` unquotes the parts that vary. Parts are quoted anew, because a client may quote
    more than it has to.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if b"%" in scope.get("raw_path", b""):
            parts = scope["raw_path"].decode().split("/")
            quoted = (quote(unquote(one), safe=UNQUOTED) for one in parts)
            scope = {**scope, "path": "/".join(quoted)}
        await self._app(scope, receive, send)


class WithHeaders:
    """The outermost layer: gives headers to every answer, and ends with that of any error."""

    def __init__(self, app: ASGIApp, headers: Mapping[str, str]) -> None:
        self._app = app
        self._headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_answered = False

        async def send_with_headers(message: Message) -> None:
            nonlocal is_answered
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)
            is_answered = message["type"] == "http.response.body" and not message.get("more_body")

        try:
            await self._app(scope, receive, send_with_headers)
        except Exception:
            # Starlette raises what it has answered and logged once more, for which uvicorn would
            # close the connection under the client's next request.
            if not is_answered:
                raise
