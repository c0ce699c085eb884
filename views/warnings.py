"""Warnings about documents, such as names that do not exist."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import sqlalchemy as sa

from minutehand.readers import registered_readers
from minutehand.steps import SmallApp
from models.action import ScheduledActionModel
from models.action.recipients import EVERYBODY, RecipientFilterModel
from models.action.warnings import KnownNames, warnings_of
from models.store import actions as store
from models.store.people import users
from models.store.people.users import User
from small_apps.document import SmallAppModel
from small_apps.document.sources import warnings_of_domains
from small_apps.store import app_overview
from views.installation import Installation

Keeps = Callable[[RecipientFilterModel], int]


def action_warnings(
    connection: sa.Connection, app: SmallApp, models: Sequence[ScheduledActionModel]
) -> list[tuple[str, ...]]:
    """Return the warnings of each action, reading the small app once."""
    people = users.listed(connection, app.id)
    names = app_overview.names_in(connection, app.id)
    known = KnownNames(
        users=frozenset(user.id for user in people),
        groups=names["groups"],
        domains=names["domains"],
        templates=names["templates"],
        design=names["design"],
        permissions=names["permissions"],
    )
    keeps = _keeping(people)
    watched = {name for one in models if (name := one.when.watched) is not None}
    if watched:
        there = store.names_among(connection, app.id, watched)
        known = replace(known, actions=there | {model.name for model in models})
    found: dict[tuple[int, ...], tuple[str, ...]] = {}
    for model in models:
        if (parts := _parts(model)) not in found:
            found[parts] = tuple(warnings_of(model, _knowing(known, _kept(model, keeps))))
    return [found[_parts(model)] for model in models]


def app_warnings(installation: Installation, model: SmallAppModel) -> tuple[str, ...]:
    """Return one sentence for each unknown connection or reader and each failed step module."""
    # Loading the registry registers the readers.
    failed = installation.registry.failed
    known = installation.settings.connections
    found = warnings_of_domains(model.domains, known, registered_readers())
    broken = [f"step module {name} cannot be imported: {why}" for name, why in failed.items()]
    return (*found, *broken)


def _parts(model: ScheduledActionModel) -> tuple[int, ...]:
    """Return the identities of what warnings are about: documents that are alike share it."""
    return (id(model.operations), id(model.when), id(model.recipients), id(model.policy))


def _knowing(known: KnownNames, kept: int | None) -> KnownNames:
    return known if kept is None else replace(known, kept_recipients=kept)


def _kept(model: ScheduledActionModel, keeps: Keeps) -> int | None:
    """Return how many users an action's recipients select now, None if that does not matter."""
    rule = model.recipients
    if rule is None or (model.when.is_event and rule.names_nobody):
        return None
    return keeps(rule)


def _keeping(people: Sequence[User]) -> Keeps:
    """Return a function that counts the selected users up to 1, enough for a warning."""
    by_id = {user.id: user for user in people}
    by_group: dict[str, list[User]] = defaultdict(list)
    for user in people:
        for group in (*user.groups, EVERYBODY):
            by_group[group].append(user)

    @cache
    def any_of_group(group: str, flags: RecipientFilterModel) -> bool:
        return any(flags.keeps(user) for user in by_group[group])

    def keeps(rule: RecipientFilterModel) -> int:
        named = (by_id[name] for name in rule.users if name in by_id)
        flags = rule.model_copy(update={"users": (), "groups": ()})
        return int(
            any(rule.keeps(user) for user in named)
            or any(any_of_group(group, flags) for group in rule.groups)
        )

    return keeps
