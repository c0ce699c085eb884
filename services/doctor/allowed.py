"""Check that the settings, and the trust in small apps, allow what active actions name."""

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from models.action.allowed import SETTING, problems_of_hooks, problems_of_steps, problems_of_task
from models.action.document import load_action
from models.celery_task import CeleryRules
from models.errors import InvalidAction, Problem
from models.stored import document_in
from models.tables import actions, naming, small_apps
from runtime.config import Settings
from services.doctor.report import Checked, fault, warning
from tasks.built_in import built_in_steps
from tasks.steps.command import STEP as COMMAND

# Documents are read one by one: a sample shows the same in less time.
MOST_ACTIONS = 2_000


def check_allowed(connection: sa.Connection, settings: Settings) -> Iterator[Checked]:
    """Yield one finding for each advice, with the first action that needs it."""
    found: dict[str, list[str]] = {}
    for row in connection.execute(_NAMED):
        for problem in _problems(row, settings):
            remedy = problem.remedy.replace(" APP ", f" {row.app} ")
            named = f"{row.name!r} of small app {row.app}: {problem.path} {problem.value!r}"
            found.setdefault(remedy, []).append(named)
    for remedy, names in found.items():
        more = f", and {len(names) - 1} more" if len(names) > 1 else ""
        if remedy.startswith(SETTING):
            yield warning("commands", f"{names[0]}{more}", f"{remedy}, for the workers too")
        else:
            yield fault("trust", f"{names[0]}{more}", remedy)


_MAY_NAME_A_PROGRAM = sa.select(actions.c.uid).where(sa.text(naming(COMMAND))).correlate(None)
_OF_A_RESTRICTED_APP = (
    sa.select(actions.c.uid)
    .join(small_apps, small_apps.c.id == actions.c.small_app_id)
    .where(small_apps.c.trust.is_not(None))
    .correlate(None)
)
_NAMED = (
    sa.select(
        actions.c.name,
        actions.c.document,
        small_apps.c.name.label("app"),
        small_apps.c.trust,
    )
    .join(small_apps, small_apps.c.id == actions.c.small_app_id)
    .where(actions.c.active, actions.c.deleted_at.is_(None))
    .where(actions.c.uid.in_(sa.union_all(_MAY_NAME_A_PROGRAM, _OF_A_RESTRICTED_APP)))
    .order_by(small_apps.c.name, actions.c.name)
    .limit(MOST_ACTIONS)
)


# Another check reports what the settings forbid.
_ANY_TASK = CeleryRules(("*",))


def _problems(row: Any, settings: Settings) -> Iterator[Problem]:
    try:
        # Steps of users are not loaded: those of restricted apps are refused when they run.
        action = load_action(document_in(row.document), steps=built_in_steps())
    except InvalidAction:
        # It is quarantined, and reported as such.
        return
    queue = action.policy.queue
    yield from problems_of_steps(action.operations, queue, row.trust, settings.commands)
    yield from problems_of_hooks(action.hooks, row.trust, settings.notify)
    yield from problems_of_task(action.operations, queue, _ANY_TASK.within(row.trust))
