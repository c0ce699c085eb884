"""publish: move production to staging, data and documents in one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
from models.problems import unknown_name
from models.store import tenants
from models.store.operations import heartbeat
from models.values import counted
from tasks.step_context import WorkContext

MOST_NAMED = 10


@dataclass
class _Kind:
    """Names of design or permission documents, by outcome."""

    published: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)


@dataclass
class _Report:
    published: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    never_refreshed: list[str] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)
    documents: dict[str, _Kind] = field(default_factory=dict)

    @property
    def news(self) -> News:
        """The changes that this operation published."""
        changed = {kind: one.published + one.removed for kind, one in self.documents.items()}
        return News(
            {name: self.rows[name] for name in self.published},
            changed.get("design", ()),
            changed.get("permissions", ()),
        )


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
    mail = mail_news(context, parameters.notify, report.news)
    message, details = _sentence(report), _details(report)
    if mail is None:
        return StepResult(message, details=details)
    details["mail"] = mail.details
    message += f"; mail about it: {mail.message}"
    if mail.outcome is StepOutcome.PARTIAL:
        message += "; `minutebook run retry` sends it to those who did not get it"
    return StepResult(message, mail.outcome, details)


def _publish(
    context: WorkContext, connection: sa.Connection, parameters: PublishParameters
) -> _Report:
    app, operation_id = context.small_app.id, context.operation_id
    known = names_in(connection, app)
    names = {
        kind: _chosen(kind, wanted, known[kind])
        for kind in KINDS
        if (wanted := getattr(parameters, kind))
    }
    report = _Report()
    if parameters.data:
        _publish_data(context, connection, parameters.data, report, is_all=not any(names.values()))
    for kind, chosen in names.items():
        app_documents.publish(connection, app, kind, chosen, operation_id)
        report.documents[kind] = _Kind(unchanged=chosen)
    for moved in app_documents.published_by(connection, app, operation_id):
        one = report.documents.setdefault(moved.kind, _Kind())
        (one.removed if moved.is_removed else one.published).append(moved.name)
        one.unchanged = [name for name in one.unchanged if name != moved.name]
    return report


def _publish_data(
    context: WorkContext,
    connection: sa.Connection,
    wanted: bool | tuple[str, ...],
    report: _Report,
    *,
    is_all: bool,
) -> None:
    """Publish domains; `is_all`: the step publishes nothing else.

    Raises StepFailed if a named domain was never refreshed, or if none was and data `is_all`.
    """
    app, operation_id = context.small_app.id, context.operation_id
    domains = {one.name: one for one in snapshots.domains_of(connection, app)}
    names = _chosen("domain", wanted, list(domains))
    report.never_refreshed = [name for name in names if domains[name].staging is None]
    staged = [name for name in names if domains[name].staging is not None]
    if names and ((is_all and not staged) or (wanted is not True and report.never_refreshed)):
        empty = ", ".join(report.never_refreshed)
        raise StepFailed(f"nothing is staged for {empty}; refresh first")
    _check_files(context, [domains[name] for name in staged])
    snapshots.publish(connection, app, staged, operation_id)
    for domain in snapshots.domains_of(connection, app):
        if domain.name in staged and domain.production is not None:
            is_ours = domain.published_by == operation_id
            (report.published if is_ours else report.unchanged).append(domain.name)
            report.rows[domain.name] = domain.production.row_count


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


def _sentence(report: _Report) -> str:
    parts = []
    if report.published:
        shown = [f"{name} ({counted(report.rows[name], 'row')})" for name in report.published]
        parts.append(f"published {_named(shown)}")
    for kind, one in report.documents.items():
        parts += [f"published {kind} {_named(one.published)}"] if one.published else []
        parts += [f"removed {kind} {_named(one.removed)}"] if one.removed else []
    if report.unchanged:
        parts.append(f"{_named(report.unchanged)} already published")
    for kind, one in report.documents.items():
        parts += [f"{kind} {_named(one.unchanged)} already published"] if one.unchanged else []
    if report.never_refreshed:
        parts.append(f"{_named(report.never_refreshed)} never refreshed")
    return "; ".join(parts) or "the small app has nothing to publish"


def _named(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _details(report: _Report) -> dict[str, Any]:
    documents: Mapping[str, Any] = {kind: vars(one) for kind, one in report.documents.items()}
    return {
        "published": report.published,
        "unchanged": report.unchanged,
        "never_refreshed": report.never_refreshed,
        "rows": report.rows,
        **documents,
    }
