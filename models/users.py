"""Users of a small app, as files, requests and documents write them."""

from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BeforeValidator,
    PlainSerializer,
    ValidationInfo,
)

from models.action.recipients import EVERYBODY
from models.document import Document, read_document
from models.errors import InvalidDocument, Problem
from models.hints import ROOT
from models.parsing import Reading, reading_of
from models.values import (
    Address,
    Flag,
    Name,
    Names,
    format_instant,
    parse_address,
    parse_instant,
    parse_name,
)

LONGEST_ID = 254


class InvalidUsers(InvalidDocument):
    """A list of users has faults; paths begin with the row (`row 3.email`)."""


def _groups(groups: tuple[str, ...]) -> tuple[str, ...]:
    if EVERYBODY in groups:
        raise ValueError('everybody is in "all" anyway; leave it out')
    return groups


def _instant(value: object, info: ValidationInfo) -> datetime:
    return parse_instant(value, reading_of(info).default_zone, round_up=True)


Instant = Annotated[
    AwareDatetime,
    BeforeValidator(_instant),
    PlainSerializer(format_instant, return_type=str),
]


class UserModel(Document):
    """A user of a small app, as files, requests and documents of small apps write one.

    `activated_at` None: the account was never activated (inactivated). `active` false: it was
    switched off (inactive). Instants are UTC, fractions rounded up to the next second.
    """

    id: Annotated[str, BeforeValidator(partial(parse_name, most=LONGEST_ID))]
    email: Address
    name: Name | None = None
    groups: Annotated[Names, AfterValidator(_groups)] = ()
    active: Flag = True
    activated_at: Instant | None = None
    created_at: Instant | None = None
    last_seen_at: Instant | None = None

    @classmethod
    def completed(cls, raw: dict[str, Any], _reading: Reading, /) -> dict[str, Any]:
        """Return `raw` with the id as `email`, if the id is an address and `email` is absent."""
        if "email" in raw:
            return raw
        try:
            return {**raw, "email": parse_address(raw.get("id"))}
        except ValueError:
            return raw


def parse_users(rows: Iterable[object], *, zone: str = "UTC") -> tuple[UserModel, ...]:
    """Return the users of `rows`; raises InvalidUsers with the problems of all rows at once.

    Instants without an offset are read in `zone`. Rows count from 1; ids are unique.
    """
    users: list[UserModel] = []
    problems: list[Problem] = []
    seen: dict[str, int] = {}
    for number, row in enumerate(rows, start=1):
        try:
            user = parse_user(row, zone)
        except InvalidUsers as error:
            problems += [_in_row(number, problem) for problem in error.problems]
            continue
        users.append(user)
        first = seen.setdefault(user.id, number)
        if first != number:
            problems.append(
                Problem(f"row {number}.id", user.id, f"occurs in row {first} too; remove one")
            )
    if problems:
        raise InvalidUsers(problems)
    return tuple(users)


def parse_user(row: object, zone: str) -> UserModel:
    """Return the user of `row`; raises InvalidUsers with all problems at once.

    Instants without an offset are read in `zone`.
    """
    user, problems = read_document(UserModel, row, Reading(default_zone=zone))
    if user is None or problems:
        raise InvalidUsers(problems)
    return user


def _in_row(number: int, problem: Problem) -> Problem:
    path = f"row {number}" if problem.path == ROOT else f"row {number}.{problem.path}"
    return Problem(path, problem.value, problem.remedy)
