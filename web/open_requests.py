"""Requests that stay open for long: those that wait for a job, and downloads."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from web.problems import TooManyOpen

# Of one token, in one process.
MOST_OF_TOKEN = 50


@dataclass
class OpenRequests:
    """How many stay open, by token. For the event loop alone."""

    _open: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def one(self, token: str) -> Iterator[None]:
        """Count a request while it lasts. Raises TooManyOpen."""
        if self._open[token] >= MOST_OF_TOKEN:
            raise TooManyOpen(
                f"{token} has {MOST_OF_TOKEN} requests that wait for a job, or downloads; try again"
                " when one has ended, or give other workers a token of their own"
            )
        self._open[token] += 1
        try:
            yield
        finally:
            self._open[token] -= 1
            self._open += Counter()
