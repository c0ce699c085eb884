"""Warnings at save: unknown names, settings without effect, likely mistakes.

A warning does not stop the save. A name that is still unknown when the action runs fails its
operation.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import sqlalchemy as sa
from pydantic import BaseModel

from broker.celery_rules import rules_of
from minutebook.steps import SmallApp
from models.action.document import ScheduledActionModel
from models.action.recipients import EVERYBODY, RecipientFilterModel
from models.celery_task import DEFAULT_QUEUE, Signatures, misfit
from models.events import CREATED
from models.hints import few_compared, meant
from models.store import actions as store
from models.store import tenants
from models.store.operations.external_send import FOLLOWED_WITHIN
from models.store.people import selection, users
from models.store.people.users import User
from models.store.workers import GONE, known_tasks, task_signatures
from models.tenant.document import SmallAppModel
from models.values import NameOf
from runtime.config import Settings
from runtime.plug_ins import added
from services.installation import Installation

Keeps = Callable[[RecipientFilterModel], int]
# How many names are searched for a hint to the right one.
MOST_NEAR = 1_000
# Keys of the policy that have no effect on event actions.
FOR_CLOCKS = {"catch_up", "overlap", "max_waiting"}
UNSENT = "its mail is written to files, not sent: no mail server is set; set SCHED_SMTP_URL"
NOT_WRITTEN = RecipientFilterModel()


@dataclass(frozen=True, slots=True)
class KnownNames:
    """The names in a small app at the time of a save; None means not looked up.

    `kept_recipients` counts the users that the action's recipients select now. `zone` is the
    small app's. Without a mail server, mail is written to files.
    """

    users: Collection[str] | None = None
    groups: Collection[str] | None = None
    # Of what plug-ins keep, by its kind.
    others: Mapping[str, Collection[str]] = field(default_factory=dict)
    actions: Collection[str] | None = None
    kept_recipients: int | None = None
    # The parameters of Celery tasks, as their workers report them.
    signatures: Signatures = field(default_factory=dict)
    # The tasks that live workers follow and the app may send, by the queues that they read.
    followed: Mapping[str, Collection[str]] = field(default_factory=dict)
    zone: str = "UTC"
    has_mail_server: bool = True


def action_warnings(
    connection: sa.Connection,
    app: SmallApp,
    models: Sequence[ScheduledActionModel],
    settings: Settings,
) -> list[tuple[str, ...]]:
    """Return the warnings of each action; only what they name is read of the small app."""
    rules = [one.recipients for one in models if one.recipients is not None]
    people = users.by_ids(connection, app.id, sorted({id for rule in rules for id in rule.users}))
    others: dict[str, Collection[str]] = {}
    for names_in in added("app_names"):
        others |= names_in(connection, app.id)
    known = KnownNames(
        users=_known_users(connection, app, rules, people),
        groups=_known_groups(connection, app, rules),
        others=others,
        zone=app.zone,
        has_mail_server=bool(settings.smtp_url.get_secret_value()),
    )
    keeps = _keeping(connection, app, people)
    if any(one.operations.handed_over[0] is not None for one in models):
        allows = rules_of(settings).within(tenants.trust_of(connection, app.id)).allows
        followed = known_tasks(connection, GONE)
        known = replace(
            known,
            signatures=task_signatures(connection, FOLLOWED_WITHIN),
            followed={queue: set(filter(allows, tasks)) for queue, tasks in followed.items()},
        )
    watched = {name for one in models if (name := one.when.watched) is not None}
    if watched:
        there = store.names_among(connection, app.id, watched)
        known = replace(known, actions=there | {model.name for model in models})
    found: dict[tuple[int, ...], tuple[str, ...]] = {}
    for model in models:
        if (parts := _parts(model)) not in found:
            its = replace(known, kept_recipients=_kept(model, keeps))
            found[parts] = tuple(warnings_of(model, its))
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
    """Return one sentence for what plug-ins warn of, and for each failed step module."""
    # Loading the registry also registers what user code registers.
    failed = installation.registry.failed
    found = (text for warn in added("app_warnings") for text in warn(installation.settings, model))
    broken = [f"step module {name} cannot be imported: {why}" for name, why in failed.items()]
    return (*found, *broken)


def _parts(model: ScheduledActionModel) -> tuple[int, ...]:
    """Return the identities of what warnings are about: documents that are alike share it."""
    parts = (model.operations, model.when, model.recipients, model.policy, model.hooks)
    return tuple(map(id, parts))


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


def warnings_of(action: ScheduledActionModel, known: KnownNames) -> list[str]:
    """Return the warnings about `action`, one text each."""
    with few_compared():
        unknown = [*_unknown(action, known), *_unknown_task(action, known)]
    return [
        *unknown,
        *_no_recipients(action, known),
        *_unsent_mail(action, known),
        *_misfits(action, known),
        *_left_out(action),
        *(warning for rule in action.when.rules for warning in rule.warnings(known.zone)),
        *_without_effect(action),
    ]


def _unsent_mail(action: ScheduledActionModel, known: KnownNames) -> Iterator[str]:
    """Yield a warning about mail of an installation without a mail server."""
    targets = action.hooks.targets
    mails = bool(action.operations.sending) or any(one.kind == "mail" for one in targets)
    if mails and not known.has_mail_server:
        yield UNSENT


def _unknown_task(action: ScheduledActionModel, known: KnownNames) -> Iterator[str]:
    """Yield a warning about a task that no live worker of its queue has."""
    handed, queue = action.operations.handed_over
    queue = queue or action.policy.queue or DEFAULT_QUEUE
    followed = known.followed.get(queue)
    if handed is None or handed.exchange or followed is None or handed.task in followed:
        return
    elsewhere = {task for tasks in known.followed.values() for task in tasks}
    near = meant(handed.task, sorted({*followed, *elsewhere} - {handed.task}))
    path = f'operations.celery_task.task "{handed.task}"'
    yield f"{path}: no live worker of queue {queue} has this task{near}"


def _misfits(action: ScheduledActionModel, known: KnownNames) -> Iterator[str]:
    """Yield a warning about arguments that a task does not take in the release that runs now."""
    handed, _ = action.operations.handed_over
    if handed is None:
        return
    parameters = known.signatures.get(handed.task)
    if parameters is not None and (why := misfit(parameters, handed.args, handed.kwargs)):
        written = f"{handed.task}({', '.join(parameters)})"
        yield f"operations.celery_task: {why}; a worker that runs now has {written}"


def _unknown(action: ScheduledActionModel, known: KnownNames) -> Iterator[str]:
    """Yield a warning about each name that the small app does not have now."""
    for path, what, names, there in _named(action, known):
        for name in names:
            if there is not None and name not in there:
                yield f'{path} "{name}": no {what} has this name now{meant(name, there)}'


def _named(
    action: ScheduledActionModel, known: KnownNames
) -> Iterator[tuple[str, str, Sequence[str], Collection[str] | None]]:
    """Yield names in a document: their path, what they name, they, and those that there are."""
    if action.recipients is not None:
        groups = [group for group in action.recipients.groups if group != EVERYBODY]
        yield "recipients.users", "user", action.recipients.users, known.users
        yield "recipients.groups", "group", groups, known.groups
    for step in action.operations.steps:
        for key, kind in () if step.spec is None else _naming(step.spec.parameters):
            value = step.parameters.get(key)
            names = [value] if kind.is_one else value
            if isinstance(names, list):
                yield f"operations.{step.name}.{key}", kind.what, names, known.others.get(kind.kind)
    if action.when.watched is not None:
        yield "when", "action", [action.when.watched], known.actions


@cache
def _naming(parameters: type[BaseModel]) -> tuple[tuple[str, NameOf], ...]:
    """Return the parameters that hold names, each with the kind of these."""
    return tuple(
        (key, kind)
        for key, field in parameters.model_fields.items()
        for kind in field.metadata
        if isinstance(kind, NameOf)
    )


def _no_recipients(action: ScheduledActionModel, known: KnownNames) -> Iterator[str]:
    if action.operations.sending and action.recipients is not None and known.kept_recipients == 0:
        yield f"recipients: no user is selected now{_flags_hint(action.recipients)}"


def _flags_hint(recipients: RecipientFilterModel) -> str:
    flags = []
    if not recipients.keeps_inactive:
        flags.append("inactive users (include_inactive_users)")
    if not recipients.keeps_inactivated:
        flags.append("users who never activated their account (include_inactivated_users)")
    return f"; the flags leave out {' and '.join(flags)}" if flags else ""


def _left_out(action: ScheduledActionModel) -> Iterator[str]:
    """Yield a warning about flags that leave out each user who was just created."""
    recipients = action.recipients or NOT_WRITTEN
    events = [getattr(rule, "event", None) for rule in action.when.rules]
    if CREATED in events and not recipients.keeps_inactivated:
        yield (
            "recipients: a new user has not activated the account yet, and is left out; write "
            '"include_inactivated_users": true'
        )


def _without_effect(action: ScheduledActionModel) -> Iterator[str]:
    if action.when.is_event:
        for key in sorted(FOR_CLOCKS & action.policy.model_fields_set):
            yield f"policy.{key}: has no effect on event actions; each event is a run of its own"
        return
    if action.policy.max_waiting > 1 and action.policy.overlap != "queue":
        yield 'policy.max_waiting: has an effect only with "overlap": "queue"'
