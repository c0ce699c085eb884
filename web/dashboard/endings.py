"""When what runs should end, in words."""

from datetime import timedelta
from typing import Protocol

from models.values.durations import lasting
from web.dashboard.texts import say


class Running(Protocol):
    """What knows when it should end."""

    @property
    def eta_s(self) -> float | None: ...
    @property
    def is_longer_than_usual(self) -> bool: ...


def ending_of(left: Running) -> str:
    """Return `ends in 40 s`, `longer than usual`, or nothing."""
    if left.is_longer_than_usual:
        return say("overview.longer")
    return "" if left.eta_s is None else say("overview.eta", span=_seconds(left.eta_s))


def _seconds(seconds: float) -> str:
    # "0 s" would say that it is over.
    whole = timedelta(seconds=max(1, round(seconds)))
    return " ".join(lasting(whole).split()[:2])
