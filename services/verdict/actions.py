"""Findings about single actions and their runs. Pure."""

from collections.abc import Mapping
from typing import Any

from models.action.health import REMEDIES
from models.notices import FindingKind
from models.store.actions.status import health_in, plan_in
from models.store.operations.eta import SlowRun
from models.values.durations import lasting
from models.worker_kinds import CELERY, HTTP, OURS
from services.verdict.finding import Finding, Kind, Severity
from services.words import instant

# A quarantined action does nothing until somebody mends it.
_SEVERITIES = {FindingKind.QUARANTINED: Severity.BROKEN}


def of_action(row: Mapping[str, Any], alert_after: int, names: Mapping[int, str]) -> Finding | None:
    """Return what is wrong with an action, None if nothing is; `names` are those of small apps."""
    health = health_in(row, alert_after)
    if health.trouble is None:
        return None
    return Finding(
        kind=Kind(health.trouble),
        severity=_SEVERITIES.get(health.trouble, Severity.ATTENTION),
        since=health.since,
        text=f"{row['name']}: {health.sentence}",
        remedy=_remedy(row, health.trouble),
        app=names.get(row["small_app_id"]),
        queue=_queue_of(row) if health.trouble is FindingKind.OVERDUE else None,
        action=row["name"],
        uid=row["uid"],
        operation=row["trouble_id"],
        reason=row["trouble_reason"],
    )


def _remedy(row: Mapping[str, Any], trouble: FindingKind) -> str:
    """Return what to do, with the commands that do it."""
    uid, run, is_over = row["uid"], row["trouble_id"], row["missed_at"] is None
    if trouble is FindingKind.QUARANTINED:
        return f"correct its document: `minutebook action edit {uid}`"
    if trouble is FindingKind.NEVER_RAN and is_over:
        return f"give it another date or rule: `minutebook action edit {uid}`"
    if trouble is FindingKind.OVERDUE:
        at = instant(row["overdue_since"])
        return f"see what its run waits for: `minutebook action explain {uid} {at}`"
    if run is None:
        return REMEDIES[trouble]
    return f"see why: `minutebook run show {run}`; run it again: `minutebook run retry {run}`"


def _queue_of(row: Mapping[str, Any]) -> str | None:
    """Return the queue in which an action's runs wait, None if its plan cannot be read."""
    from models.action.plan import UnreadablePlan

    plan = plan_in(row)
    if isinstance(plan, UnreadablePlan):
        return None
    kind = HTTP if plan.job is not None else CELERY if plan.hand_over is not None else OURS
    return kind.listed(plan.queue)


def of_run(run: SlowRun, names: Mapping[int, str]) -> Finding:
    """Return the finding that a run takes longer than usual."""
    if run.usual is None:
        text = "a run takes more than an hour, and no earlier one shows how long it should take"
    else:
        text = f"a run takes longer than usual, which is {lasting(run.usual)}"
    return Finding(
        kind=Kind.RUN_SLOW,
        severity=Severity.ATTENTION,
        since=run.started_at,
        text=f"{run.action}: {text}",
        remedy=f"`minutebook run show {run.id}` shows what it does; "
        f"`minutebook run cancel {run.id}` stops it",
        app=names.get(run.small_app_id),
        action=run.action,
        uid=run.action_uid,
        operation=run.id,
    )
