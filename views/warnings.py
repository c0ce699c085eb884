"""Warnings about documents, such as names that do not exist."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache

import sqlalchemy as sa

from minutebook.readers import registered_readers
from minutebook.steps import SmallApp
from models.action.document import ScheduledActionModel
from models.action.recipients import EVERYBODY, RecipientFilterModel
from models.action.warnings import KnownNames, warnings_of
from models.store import actions as store
from models.store.operations.external_send import FOLLOWED_WITHIN
from models.store.people import selection, users
from models.store.people.users import User
from models.store.tenants import app_overview
from models.store.workers import task_signatures
from models.tenant.document import SmallAppModel
from models.tenant.sources import warnings_of_domains
from runtime.config import Settings
from views.installation import Installation

Keeps = Callable[[RecipientFilterModel], int]
# How many names are searched for a hint to the right one.
MOST_NEAR = 1_000


def action_warnings(
    connection: sa.Connection,
    app: SmallApp,
    models: Sequence[ScheduledActionModel],
    settings: Settings,
) -> list[tuple[str, ...]]:
    """Return the warnings of each action; only what they name is read of the small app."""
    rules = [one.recipients for one in models if one.recipients is not None]
    people = users.by_ids(connection, app.id, sorted({id for rule in rules for id in rule.users}))
    names = app_overview.names_in(connection, app.id)
    known = KnownNames(
        users=_known_users(connection, app, rules, people),
        groups=_known_groups(connection, app, rules),
        domains=names["domains"],
        templates=names["templates"],
        design=names["design"],
        permissions=names["permissions"],
        zone=app.zone,
        has_mail_server=bool(settings.smtp_url.get_secret_value()),
    )
    keeps = _keeping(connection, app, people)
    if any(one.operations.handed_over[0] is not None for one in models):
        known = replace(known, signatures=task_signatures(connection, FOLLOWED_WITHIN))
    watched = {name for one in models if (name := one.when.watched) is not None}
    if watched:
        there = store.names_among(connection, app.id, watched)
        known = replace(known, actions=there | {model.name for model in models})
    found: dict[tuple[int, ...], tuple[str, ...]] = {}
    for model in models:
        if (parts := _parts(model)) not in found:
            found[parts] = tuple(warnings_of(model, _knowing(known, _kept(model, keeps))))
    return [found[_parts(model)] for model in models]


def _known_users(
    connection: sa.Connection,
    app: SmallApp,
    rules: Iterable[RecipientFilterModel],
    people: Mapping[str, User],
) -> Collection[str]:
    """Return the named users that exist; if one does not, the first users of the app as well."""
    if all(id in people for rule in rules for id in rule.users):
        return people.keys()
    return dict.fromkeys([*people, *selection.first_ids(connection, app.id, MOST_NEAR)])


def _known_groups(
    connection: sa.Connection, app: SmallApp, rules: Iterable[RecipientFilterModel]
) -> Collection[str]:
    """Return the named groups that exist; if one does not, the first groups of the app as well."""
    named = {name for rule in rules for name in rule.groups} - {EVERYBODY}
    there = selection.groups_among(connection, app.id, named) if named else set()
    if there == named:
        return there
    return dict.fromkeys([*sorted(there), *selection.first_groups(connection, app.id, MOST_NEAR)])


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
    parts = (model.operations, model.when, model.recipients, model.policy, model.hooks)
    return tuple(map(id, parts))


def _knowing(known: KnownNames, kept: int | None) -> KnownNames:
    return known if kept is None else replace(known, kept_recipients=kept)


def _kept(model: ScheduledActionModel, keeps: Keeps) -> int | None:
    """Return how many users an action's recipients select now, None if that does not matter."""
    rule = model.recipients
    if rule is None or (model.when.is_event and rule.names_nobody):
        return None
    return keeps(rule)


def _keeping(connection: sa.Connection, app: SmallApp, people: Mapping[str, User]) -> Keeps:
    """Return a function that counts the selected users up to 1, enough for a warning.

    `people` are those that are named.
    """

    @cache
    def any_of_group(group: str, flags: RecipientFilterModel) -> bool:
        return selection.keeps_one_of(connection, app.id, group, flags)

    def keeps(rule: RecipientFilterModel) -> int:
        named = (people[name] for name in rule.users if name in people)
        flags = rule.model_copy(update={"users": (), "groups": ()})
        return int(
            any(rule.keeps(user) for user in named)
            or any(any_of_group(group, flags) for group in rule.groups)
        )

    return keeps
