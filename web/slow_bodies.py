"""A body that does not arrive within its time is refused."""

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from web.problems import answer


class _TooSlow(Exception):
    """The body did not arrive within its time."""


class SlowBodies:
    """Middleware that gives the body of each request a time to arrive in."""

    def __init__(self, app: ASGIApp, timeout_s: float) -> None:
        self._app = app
        self._timeout_s = timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        loop = asyncio.get_running_loop()
        end = loop.time() + self._timeout_s
        is_whole = False
        is_answered = False

        async def receive_in_time() -> Message:
            nonlocal is_whole
            if is_whole:
                return await receive()
            try:
                async with asyncio.timeout_at(end):
                    message = await receive()
            except TimeoutError:
                raise _TooSlow from None
            is_whole = message["type"] != "http.request" or not message.get("more_body", False)
            return message

        async def note(message: Message) -> None:
            nonlocal is_answered
            is_answered = True
            await send(message)

        try:
            await self._app(scope, receive_in_time, note)
        except _TooSlow:
            if not is_answered:
                detail = f"the body did not arrive within {self._timeout_s:g} s"
                await answer(408, "body-too-slow", detail)(scope, receive, send)
