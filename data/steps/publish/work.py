"""publish: move production to staging, data and documents in one transaction."""

from collections.abc import Sequence
from typing import Any, cast

import sqlalchemy as sa

from data.settings import settings_in
from data.small_app.staged import KINDS
from data.snapshots import is_there
from data.steps.publish import PublishParameters
from data.steps.publish.new_data import News, mail_news
from data.store import documents as app_documents
from data.store import snapshots
from data.store.small_apps import names_in
from data.store.snapshots import Domain
from minutebook.steps import StepFailed, StepOutcome, StepResult
from models.hints import unknown_name
from models.store import tenants
from models.store.operations import heartbeat
from models.values import counted
from tasks.step_context import WorkContext

MOST_NAMED = 10
# What a publish does to a document.
MOVES = ("published", "removed")


# The step's details: names by outcome, of domains, and within it of each kind of documents.
Report = dict[str, Any]


def run(context: WorkContext) -> StepResult:
    """Move production to staging in one transaction, leaving unchanged data alone.

    Then send the "new data available" mail, if wanted; it includes what an earlier attempt of this
    operation published.
    """
    parameters = cast(PublishParameters, context.parameters)
    context.progress(phase="publish", blocking=True)
    with context.engine.begin() as connection:
        heartbeat.beat(connection, context.key)
        tenants.lock(connection, context.small_app.id)
        report = _publish(context, connection, parameters)
    context.progress(blocking=False)
    mail = mail_news(context, parameters.notify, _news(report))
    message = _sentence(report)
    if mail is None:
        return StepResult(message, details=report)
    report["mail"] = mail.details
    message += f"; mail about it: {mail.message}"
    if mail.outcome is StepOutcome.PARTIAL:
        message += "; `minutebook run retry` sends it to those who did not get it"
    return StepResult(message, mail.outcome, report)


def _publish(
    context: WorkContext, connection: sa.Connection, parameters: PublishParameters
) -> Report:
    app, operation_id = context.small_app.id, context.operation_id
    known = names_in(connection, app)
    names = {
        kind: _chosen(kind, wanted, known[kind])
        for kind in KINDS
        if (wanted := getattr(parameters, kind))
    }
    report: Report = {"published": [], "unchanged": [], "never_refreshed": [], "rows": {}}
    if parameters.data:
        _publish_data(context, connection, parameters.data, report, is_all=not any(names.values()))
    for kind, chosen in names.items():
        app_documents.publish(connection, app, kind, chosen, operation_id)
        report[kind] = {"published": [], "removed": [], "unchanged": chosen}
    for moved in app_documents.published_by(connection, app, operation_id):
        one = report.setdefault(moved.kind, {"published": [], "removed": [], "unchanged": []})
        one["removed" if moved.is_removed else "published"].append(moved.name)
        one["unchanged"] = [name for name in one["unchanged"] if name != moved.name]
    return report


def _news(report: Report) -> News:
    """Return the changes that this operation published."""
    rows = {name: report["rows"][name] for name in report["published"]}
    documents = (report.get(kind, {}) for kind in KINDS)
    return News(rows, *(one.get("published", []) + one.get("removed", []) for one in documents))


def _publish_data(
    context: WorkContext,
    connection: sa.Connection,
    wanted: bool | tuple[str, ...],
    report: Report,
    *,
    is_all: bool,
) -> None:
    """Publish domains; `is_all`: the step publishes nothing else.

    Raises StepFailed if a named domain was never refreshed, or if none was and data `is_all`.
    """
    app, operation_id = context.small_app.id, context.operation_id
    domains = {one.name: one for one in snapshots.domains_of(connection, app)}
    names = _chosen("domain", wanted, list(domains))
    fresh = [name for name in names if domains[name].staging is None]
    report["never_refreshed"] = fresh
    staged = [name for name in names if domains[name].staging is not None]
    if names and ((is_all and not staged) or (wanted is not True and fresh)):
        raise StepFailed(f"nothing is staged for {', '.join(fresh)}; refresh first")
    _check_files(context, [domains[name] for name in staged])
    snapshots.publish(connection, app, staged, operation_id)
    for domain in snapshots.domains_of(connection, app):
        if domain.name in staged and domain.production is not None:
            is_ours = domain.published_by == operation_id
            report["published" if is_ours else "unchanged"].append(domain.name)
            report["rows"][domain.name] = domain.production.row_count


def _chosen(what: str, wanted: bool | tuple[str, ...], known: Sequence[str]) -> list[str]:
    """Return the wanted names, each once; raises StepFailed for an unknown one."""
    if wanted is True:
        return list(known)
    names = list(dict.fromkeys(wanted or ()))
    for name in names:
        if name not in known:
            shown = f"{what} {name!r} {unknown_name(what, name, known)}"
            raise StepFailed(shown, permanent=True)
    return names


def _check_files(context: WorkContext, domains: Sequence[Domain]) -> None:
    for domain in domains:
        staged = domain.staging
        if staged and not is_there(settings_in(context.settings), staged.path, staged.byte_count):
            raise StepFailed(f"the staged snapshot of {domain.name} is damaged; refresh it again")


def _sentence(report: Report) -> str:
    parts, documents = [], [(kind, report[kind]) for kind in KINDS if kind in report]
    if report["published"]:
        shown = [f"{name} ({counted(report['rows'][name], 'row')})" for name in report["published"]]
        parts.append(f"published {_named(shown)}")
    for kind, one in documents:
        parts += [f"{what} {kind} {_named(one[what])}" for what in MOVES if one[what]]
    if report["unchanged"]:
        parts.append(f"{_named(report['unchanged'])} already published")
    for kind, one in documents:
        if one["unchanged"]:
            parts.append(f"{kind} {_named(one['unchanged'])} already published")
    if report["never_refreshed"]:
        parts.append(f"{_named(report['never_refreshed'])} never refreshed")
    return "; ".join(parts) or "the small app has nothing to publish"


def _named(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
