"""Seats: what a person whom a proxy names may have a session for, by the groups of that person."""

from collections.abc import Sequence
from dataclasses import dataclass

from models.roles import PERMITS, Role
from runtime.sections.web import WebSettings

EVERYONE = "*"


@dataclass(frozen=True, slots=True)
class Person:
    """Whom a proxy names, and the groups that it names with them."""

    name: str
    groups: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Seat:
    """A role in one small app, or in the whole installation if `app` is None."""

    role: Role
    app: str | None


def seats_of(person: Person, settings: WebSettings) -> tuple[Seat, ...]:
    """Return the highest role of a person for each small app that a group of theirs names.

    The whole installation comes first. Without a map of groups, everyone has the same seat.
    """
    if not settings.sso_groups:
        return (Seat(Role(settings.sso_role), None),)
    best: dict[str | None, Role] = {}
    for group, given in settings.sso_groups.items():
        role = Role(given.role)
        if group in person.groups or group == EVERYONE:
            best[given.app] = max(role, best.get(given.app, role), key=_height)
    found = [Seat(role, app) for app, role in best.items()]
    return tuple(sorted(found, key=lambda seat: (seat.app is not None, seat.app or "")))


def only_seat(seats: Sequence[Seat]) -> Seat | None:
    """Return the seat that leaves no choice: the only one, or one that permits most everywhere."""
    first = seats[0] if seats else None
    if first is None or (len(seats) > 1 and first.app is not None):
        return None
    is_highest = all(_height(one.role) <= _height(first.role) for one in seats)
    return first if is_highest else None


def _height(role: Role) -> int:
    return len(PERMITS[role])
