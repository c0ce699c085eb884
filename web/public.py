"""The status of small apps for people without an account: any number of them cost little."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from models.errors import NotFound
from runtime.clock import monotonic
from views.apps.public import PublicStatus
from web.together import Together

KEPT_S = 1.0
# Names that were asked for last, known or not: strangers choose them.
MOST = 1_000
# The same for a name that is unknown and for one that shows nothing.
NOTHING = "no small app of this name shows its status to people without an account"
HEADERS = {"Cache-Control": f"public, max-age={KEPT_S:.0f}"}


@dataclass(eq=False)
class PublicStatuses:
    """The public status of small apps, each read at most once a second."""

    _read: Callable[[Collection[str]], Mapping[str, PublicStatus | None]]
    _kept: dict[str, tuple[float, PublicStatus | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._together = Together(self._read, lambda _: None)

    async def get(self, name: str) -> PublicStatus:
        """Return the status of a small app, at most a second old. Raises NotFound."""
        kept = self._kept.get(name)
        if kept is None or monotonic() >= kept[0] + KEPT_S:
            kept = (monotonic(), await self._together.get(name))
            self._keep(name, kept)
        if kept[1] is None:
            raise NotFound(NOTHING)
        return kept[1]

    def _keep(self, name: str, kept: tuple[float, PublicStatus | None]) -> None:
        self._kept.pop(name, None)
        self._kept[name] = kept
        if len(self._kept) > MOST:
            del self._kept[next(iter(self._kept))]
