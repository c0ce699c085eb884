"""The status of actions as every list shows it: what a tick knows of them, and their health."""

from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from models.action.health import RETRY, Health, health_of
from models.notices import FindingKind
from models.operation import TROUBLED, UNSTARTED, OperationState
from models.sql import database_now, dicts, in_literals
from models.store.conditions import IS_EXPECTED, NOT_DELETED, state_of
from models.store.scope import WHOLE_INSTALLATION, Scope
from models.tables import action_cursor, action_state, actions, findings, operations

if TYPE_CHECKING:
    from models.action.plan import Plan, UnreadablePlan

# How long a missed occurrence needs attention if the action does nothing meanwhile.
MISSED_MATTERS = timedelta(days=7)


_STORED = [one for one in actions.c if one is not actions.c.plan]
_OF_STATE = (
    *("last_state", "last_run_at", "last_success_at", "run_number"),
    *("failures_in_row", "bad_runs_in_a_row"),
)
_WHY = sa.func.coalesce(operations.c.error, operations.c.reason)
_OVERDUE = sa.select(findings.c.action_uid).where(
    findings.c.ended_at.is_(None), findings.c.kind == FindingKind.OVERDUE
)
# No rule of the clock names another instant, and no event makes it due.
_IS_OVER = (action_cursor.c.next_occurrence_at.is_(None), actions.c.event.is_(None))


@lru_cache
def listing(*, has_documents: bool = True) -> sa.Select[Any]:
    """Return the query of actions with their cursors and their status, built once.

    A list that shows no documents does not read them: they can be long. The plans are texts, for
    `plan_in`: a list shows nothing of most of them.
    """
    waiting = sa.select(sa.func.min(operations.c.occurrence_at)).where(
        IS_EXPECTED, operations.c.action_uid == actions.c.uid, actions.c.uid.in_(_OVERDUE)
    )
    return (
        sa.select(
            *(one for one in _STORED if has_documents or one is not actions.c.document),
            sa.type_coerce(actions.c.plan, sa.Text).label("plan"),
            action_cursor.c.next_occurrence_at,
            action_cursor.c.watermark,
            *(action_state.c[name] for name in _OF_STATE),
            waiting.correlate(actions).scalar_subquery().label("overdue_since"),
            _OVERDUE.with_only_columns(findings.c.text)
            .where(findings.c.action_uid == actions.c.uid)
            .correlate(actions)
            .scalar_subquery()
            .label("overdue_text"),
            _of_last(_was_missed(), operations.c.occurrence_at).label("missed_at"),
            _of_last(_is_troubled(), operations.c.id).label("trouble_id"),
            _of_last(_is_troubled(), _WHY).label("trouble_reason"),
            # Only for actions that never ran: others have a long history.
            sa.case((action_state.c.last_state.is_(None), _first_run())).label("first_run"),
            sa.and_(*_IS_OVER).label("is_over"),
        )
        .join(action_cursor, action_cursor.c.action_uid == actions.c.uid)
        .outerjoin(action_state, state_of(actions.c.uid))
    )


def plan_in(row: Mapping[str, Any]) -> "Plan | UnreadablePlan":
    """Return the plan of a row, whether the query read it or has only its text."""
    plan: Plan | UnreadablePlan | str = row["plan"]
    if not isinstance(plan, str):
        return plan
    from models.action.plan import read_plan

    return read_plan(plan)


def health_in(row: Mapping[str, Any], alert_after: int) -> Health:
    """Return the health of a listed action; `alert_after` holds unless its hooks have a number."""
    if row["bad_runs_in_a_row"]:
        # A broken plan has no hooks.
        hooks = getattr(plan_in(row), "hooks", None)
        alert_after = (hooks and hooks.alert_after) or alert_after
    return health_of(row, alert_after)


def perhaps_unhealthy(
    connection: sa.Connection, scope: Scope = WHOLE_INSTALLATION
) -> list[dict[str, Any]]:
    """Return each action of the scope that may be unhealthy, with its status.

    They are in the order of their names; `health_of` decides.
    """
    query = listing().where(NOT_DELETED, may_be_unhealthy())
    its_own = query.where(scope.has(actions.c.small_app_id))
    return dicts(connection, its_own.order_by(actions.c.name))


def may_be_unhealthy() -> sa.ColumnElement[bool]:
    """Return the condition that a row of `listing` may be of an unhealthy action.

    One set of candidates, each part by an index: a condition for each action would read them all.
    """
    state = action_state.c
    has_trouble = state.last_state != "success"
    candidates = (
        sa.select(actions.c.uid).where(actions.c.quarantined.is_not(None)),
        sa.select(state.action_uid).where(state.subject == "", has_trouble),
        _OVERDUE,
        _is_over(),
        sa.select(operations.c.action_uid).where(_was_missed()),
    )
    matters = actions.c.active | actions.c.quarantined.is_not(None)
    return sa.and_(matters, actions.c.uid.in_(sa.union_all(*candidates)))


def _first_run() -> sa.ScalarSelect[Any]:
    """Return the state of the newest operation of an action, `retry` after a failed attempt."""
    is_retried = operations.c.state.in_(UNSTARTED) & (operations.c.failures > 0)
    return (
        sa.select(sa.case((is_retried, RETRY), else_=operations.c.state))
        .where(operations.c.action_uid == actions.c.uid)
        .order_by(operations.c.occurrence_at.desc())
        .limit(1)
        .correlate(actions)
        .scalar_subquery()
    )


def _is_over() -> sa.Select[Any]:
    """Return the active actions that never ran, and will not be due again."""
    never_ran = action_state.c.last_state.is_(None)
    found = sa.select(action_cursor.c.action_uid).join(
        actions, actions.c.uid == action_cursor.c.action_uid
    )
    with_state = found.outerjoin(action_state, state_of(action_cursor.c.action_uid))
    return with_state.where(*_IS_OVER, actions.c.active, never_ran)


def _of_last(stands: sa.ColumnElement[bool], column: sa.ColumnElement[Any]) -> sa.ScalarSelect[Any]:
    """Return a column of the action's last occurrence if it stands so, else null."""
    return (
        sa.select(sa.case((stands, column)))
        .where(operations.c.action_uid == actions.c.uid)
        .where(operations.c.occurrence_at <= database_now())
        .order_by(operations.c.occurrence_at.desc())
        .limit(1)
        .correlate(actions)
        .scalar_subquery()
    )


def _is_troubled() -> sa.ColumnElement[bool]:
    """Return whether an operation did not go well: the condition of operations_troubled."""
    return in_literals(operations.c.state, TROUBLED)


def _was_missed() -> sa.ColumnElement[bool]:
    return sa.and_(
        _is_troubled(),
        operations.c.state == OperationState.MISSED,
        operations.c.finished_at >= database_now(-MISSED_MATTERS),
    )
