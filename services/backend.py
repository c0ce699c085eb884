"""Where `services` are asked: at the installation of this machine, or at a server elsewhere."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from runtime.clock import POLL_S
from services.installation import Installation
from services.view import LARGEST_PAGE, Page, View

P = ParamSpec("P")
Answer = TypeVar("Answer")
Item = TypeVar("Item", bound=View)


class Backend(Protocol):
    """What answers: the installation here, or a server elsewhere."""

    @property
    def poll_s(self) -> float:
        """How often to ask whether something has ended, in seconds."""

    def call(
        self,
        function: Callable[Concatenate[Installation, P], Answer],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Answer:
        """Return what a function of `services/` returns for an installation; raises its errors."""


@dataclass
class Local:
    """The installation of this machine."""

    installation: Installation
    poll_s = POLL_S

    def call(
        self,
        function: Callable[Concatenate[Installation, P], Answer],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Answer:
        """Call the function."""
        return function(self.installation, *args, **kwargs)


def every(
    backend: Backend, function: Callable[..., Page[Item]], most: int | None = None, **options: Any
) -> tuple[Item, ...]:
    """Return what all pages of a list have, or its first `most`."""
    found: list[Item] = []
    cursor = None
    while True:
        limit = LARGEST_PAGE if most is None else min(most - len(found), LARGEST_PAGE)
        page = backend.call(function, limit=limit, cursor=cursor, **options)
        found += page.items
        cursor = page.next
        if cursor is None or len(found) == most:
            return tuple(found)
