"""Users and groups in the document of a small app.

A document adds and changes the users that it lists; it removes others only with `users_complete`.
A listed group has exactly the listed members.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Protocol

from pydantic import BeforeValidator
from pydantic_core import InitErrorDetails

from models.document import as_object
from models.errors import Problem
from models.problems import few_compared, line_error, meant
from models.users import UserModel
from models.values import Names, counted, parse_list

Members = Mapping[str, frozenset[str]]
FIELDS = ("email", "name", "active", "created_at", "activated_at", "last_seen_at")


Users = Annotated[tuple[UserModel, ...], BeforeValidator(parse_list)]
EXAMPLE = '{"manager": ["ann@example.com"]}'
Groups = Annotated[dict[str, Names], BeforeValidator(partial(as_object, example=EXAMPLE))]


class StoredUser(Protocol):
    """A stored user, as `models.store.people.users` returns it."""

    @property
    def id(self) -> str: ...
    @property
    def groups(self) -> frozenset[str]: ...


@dataclass(frozen=True, slots=True)
class People:
    """The people of a document; empty or None if the document has none."""

    users: tuple[UserModel, ...] = ()
    groups: Mapping[str, tuple[str, ...]] | None = None
    is_complete: bool = False


@dataclass(frozen=True, slots=True)
class PeoplePlan:
    """The writes and removals that apply a document's people, and the same in words."""

    write: tuple[UserModel, ...] = ()
    new_groups: tuple[str, ...] = ()
    removed_users: tuple[str, ...] = ()
    removed_groups: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()


def people_problems(raw: Mapping[str, Any]) -> list[InitErrorDetails]:
    """Return the problems of the users of a raw document."""
    problems = []
    seen: dict[object, int] = {}
    rows = raw.get("users")
    for number, row in enumerate(rows if isinstance(rows, list) else []):
        id = row.get("id") if isinstance(row, Mapping) else None
        if isinstance(id, str) and seen.setdefault(id, number) != number:
            text = f"repeats users[{seen[id]}]; list each user once"
            problems.append(line_error(("users", number, "id"), id, text))
    if raw.get("users_complete") is not None and "users" not in raw:
        text = 'needs "users"; list every user of the small app there'
        problems.append(line_error(("users_complete",), raw["users_complete"], text))
    return problems


def unknown_members(people: People, known: Iterable[str]) -> list[Problem]:
    """Return a problem for each group member that is neither a listed nor a stored user."""
    stored = () if people.is_complete else known
    ids = {*stored, *(user.id for user in people.users)}
    with few_compared():
        return [
            Problem(f"groups.{group}[{number}]", member, f"is not a user of this small app{hint}")
            for group, members in (people.groups or {}).items()
            for number, member in enumerate(members)
            if member not in ids
            for hint in [meant(member, ids, '; list it under "users"')]
        ]


def plan_people(
    people: People, stored: Sequence[StoredUser], stored_groups: Iterable[str]
) -> PeoplePlan:
    """Return the changes that make the stored users and groups match the document."""
    members = {group: frozenset(ids) for group, ids in (people.groups or {}).items()}
    listed = {user.id: user for user in people.users}
    kept = [one for one in stored if not people.is_complete or one.id in listed]
    known = {one.id: one for one in kept}
    write = [_written(user, known.get(user.id), members) for user in people.users]
    write += [_regrouped(one, members) for one in kept if one.id not in listed]
    changed = [user for user in write if _differs(user, known.get(user.id))]
    wanted = {*members, *(group for user in write for group in user.groups)}
    removed = [one.id for one in stored if one.id not in known]
    gone = sorted(set(stored_groups) - wanted) if people.is_complete else []
    created = sum(user.id not in known for user in changed)
    new = sorted(wanted - set(stored_groups))
    return PeoplePlan(
        tuple(changed),
        tuple(new),
        tuple(removed),
        tuple(gone),
        _in_words(created, len(changed) - created, removed, new, gone),
    )


def _written(user: UserModel, known: StoredUser | None, members: Members) -> UserModel:
    """Return a listed user with their new groups."""
    own = user.groups if "groups" in user.model_fields_set or known is None else known.groups
    return user.model_copy(update={"groups": _groups_of(user.id, own, members)})


def _regrouped(known: StoredUser, members: Members) -> UserModel:
    """Return a user that the document does not list, with their new groups only."""
    groups = _groups_of(known.id, known.groups, members)
    # The address is not among the fields that are set: the stored one, which may be null, stays.
    return UserModel.model_construct({"id", "groups"}, id=known.id, email="", groups=groups)


def _groups_of(id: str, own: Iterable[str], members: Members) -> tuple[str, ...]:
    others = {group for group in own if group not in members}
    return tuple(sorted(others | {group for group, ids in members.items() if id in ids}))


def _differs(user: UserModel, known: StoredUser | None) -> bool:
    if known is None or frozenset(user.groups) != known.groups:
        return True
    given = [name for name in FIELDS if name in user.model_fields_set]
    return any(getattr(user, name) != getattr(known, name) for name in given)


def _in_words(
    created: int, changed: int, removed: Sequence[str], new: Sequence[str], gone: Sequence[str]
) -> tuple[str, ...]:
    counts = {
        ("user", "created"): created,
        ("user", "changed"): changed,
        ("user", "removed"): len(removed),
        ("group", "created"): len(new),
        ("group", "removed"): len(gone),
    }
    return tuple(
        f"{counted(count, what)} {done}" for (what, done), count in counts.items() if count
    )
