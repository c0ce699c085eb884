"""When what runs should end, in words."""

from datetime import timedelta

from models.store.operations.eta import Eta, Left
from models.values.durations import lasting
from views.apps import DataStatus
from views.apps.public import PublicStatus
from views.operations import OperationRow
from web.dashboard.texts import say


def usual_end(one: OperationRow) -> Eta | None:
    """Return when a running operation should end; None if that is unknown."""
    if one.eta_earliest_at is None or one.eta_at is None or one.eta_latest_at is None:
        return None
    return Eta(one.eta_earliest_at, one.eta_at, one.eta_latest_at)


def ending_of(left: Left | DataStatus | PublicStatus) -> str:
    """Return `ends in 40 s (20 s to 1 min)`, `longer than usual`, or nothing."""
    if left.is_longer_than_usual:
        return say("overview.longer")
    if left.eta_s is None:
        return ""
    least, most = _seconds(left.eta_earliest_s), _seconds(left.eta_latest_s)
    key = "overview.eta" if least == most else "overview.eta_between"
    return say(key, span=_seconds(left.eta_s), least=least, most=most)


def _seconds(seconds: float | None) -> str:
    # "0 s" would say that it is over.
    whole = timedelta(seconds=max(1, round(seconds or 0)))
    return " ".join(lasting(whole).split()[:2])
