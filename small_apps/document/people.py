"""Users and groups in the document of a small app: pure.

A document adds users and changes those it lists; it takes nobody away unless it says
`users_complete`. A group that it lists has exactly the members that stand there.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

from pydantic import BeforeValidator
from pydantic_core import InitErrorDetails

from models.action.recipients import EVERYBODY
from models.errors import Problem
from models.problems import line_error, nearest
from models.users import UserModel
from models.values import Names, parse_list, parse_name

Members = Mapping[str, frozenset[str]]
FIELDS = ("email", "name", "active", "created_at", "activated_at", "last_seen_at")


def _groups(value: object) -> object:
    if not isinstance(value, dict):
        raise ValueError('write an object of groups: {"manager": ["ann@example.com"]}')
    return value


Users = Annotated[tuple[UserModel, ...], BeforeValidator(parse_list)]
Groups = Annotated[dict[str, Names], BeforeValidator(_groups)]


class StoredUser(Protocol):
    """A user as stored; those of `models.store.people.users` are."""

    @property
    def id(self) -> str: ...
    @property
    def groups(self) -> frozenset[str]: ...


@dataclass(frozen=True, slots=True)
class People:
    """What a document says of people; None and empty where it says nothing."""

    users: tuple[UserModel, ...] = ()
    groups: Mapping[str, tuple[str, ...]] | None = None
    is_complete: bool = False


@dataclass(frozen=True, slots=True)
class PeoplePlan:
    """What makes people what a document says: whom to write, whom to remove, and in words."""

    write: tuple[UserModel, ...] = ()
    new_groups: tuple[str, ...] = ()
    removed_users: tuple[str, ...] = ()
    removed_groups: tuple[str, ...] = ()
    told: tuple[str, ...] = ()


def faults_of_people(raw: Mapping[str, Any]) -> list[InitErrorDetails]:
    """Return the faults between users and groups of a raw document."""
    faults = []
    seen: dict[object, int] = {}
    rows = raw.get("users")
    for number, row in enumerate(rows if isinstance(rows, list) else []):
        id = row.get("id") if isinstance(row, Mapping) else None
        if isinstance(id, str) and seen.setdefault(id, number) != number:
            told = f"is users[{seen[id]}] already; a user stands once"
            faults.append(line_error(("users", number, "id"), id, told))
    groups = raw.get("groups")
    for name in groups if isinstance(groups, Mapping) else ():
        remedy = _wrong_group(name)
        if remedy is not None:
            faults.append(line_error(("groups", str(name)), name, remedy))
    if raw.get("users_complete") is not None and "users" not in raw:
        told = 'tells that "users" are all there are; write them too'
        faults.append(line_error(("users_complete",), raw["users_complete"], told))
    return faults


def _wrong_group(name: object) -> str | None:
    try:
        parse_name(name)
    except ValueError as error:
        return f"the name {error}"
    return 'everybody is in "all" anyway; leave it out' if name == EVERYBODY else None


def unknown_members(people: People, known: Iterable[str]) -> list[Problem]:
    """Return a problem for each member of a group who is no user, in the document or stored."""
    stored = () if people.is_complete else known
    ids = {*stored, *(user.id for user in people.users)}
    problems = []
    for group, members in (people.groups or {}).items():
        for number, member in enumerate(members):
            if member not in ids:
                near = nearest(member, ids)
                hint = f'did you mean "{near}"?' if near else 'list it under "users"'
                told = f"is no user of this small app; {hint}"
                problems.append(Problem(f"groups.{group}[{number}]", member, told))
    return problems


def plan_people(
    people: People, stored: Sequence[StoredUser], stored_groups: Iterable[str]
) -> PeoplePlan:
    """Return what makes the stored users and groups what the document says of them."""
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
    """Return a listed user with the groups that they are in afterwards."""
    own = user.groups if "groups" in user.model_fields_set or known is None else known.groups
    return user.model_copy(update={"groups": _groups_of(user.id, own, members)})


def _regrouped(known: StoredUser, members: Members) -> UserModel:
    """Return a user that the document does not list, with their groups and nothing else."""
    groups = _groups_of(known.id, known.groups, members)
    # The address is not among the fields given: the stored one, which may be none, stays.
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
        "users created": created,
        "users changed": changed,
        "users removed": len(removed),
        "groups created": len(new),
        "groups removed": len(gone),
    }
    return tuple(f"{count} {what}" for what, count in counts.items() if count)
