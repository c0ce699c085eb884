"""publish: production shows what staging holds, all domains at one instant."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import sqlalchemy as sa

from minutehand.steps import StepFailed, StepResult
from models.parameters import PublishParameters
from models.problems import unknown_name
from models.store import running, snapshots
from models.store.snapshots import Domain
from small_apps.snapshots import is_there
from tasks.context import WorkContext

# Documents of the small app that a later release stages; now there is never one.
DOCUMENTS = ("design", "permissions")


@dataclass
class _Report:
    published: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    never_refreshed: list[str] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)
    not_staged: list[str] = field(default_factory=list)


def run(context: WorkContext) -> StepResult:
    """Move production to staging in one transaction; what is published already stays as it is."""
    parameters = cast(PublishParameters, context.parameters)
    report = _Report(not_staged=[kind for kind in DOCUMENTS if getattr(parameters, kind)])
    if parameters.data:
        context.progress(phase="publish")
        with context.engine.begin() as connection:
            running.beat(connection, context.operation_id, context.attempt)
            _publish_data(context, connection, parameters.data, report)
    return StepResult(_sentence(report), details=_details(report))


def _publish_data(
    context: WorkContext,
    connection: sa.Connection,
    wanted: bool | tuple[str, ...],
    report: _Report,
) -> None:
    domains = {one.name: one for one in snapshots.domains_of(connection, context.small_app.id)}
    names = list(domains) if wanted is True else list(wanted or ())
    _check_known(names, domains)
    report.never_refreshed = [name for name in names if domains[name].staging is None]
    staged = [name for name in names if domains[name].staging is not None]
    if names and (not staged or (wanted is not True and report.never_refreshed)):
        empty = ", ".join(report.never_refreshed)
        raise StepFailed(f"nothing is staged for {empty}; refresh first")
    _check_files(context, [domains[name] for name in staged])
    report.published = snapshots.publish(connection, context.small_app.id, staged)
    report.unchanged = [name for name in staged if name not in report.published]
    for name in staged:
        staging = domains[name].staging
        report.rows[name] = staging.row_count if staging else 0


def _check_known(names: Sequence[str], known: Mapping[str, Domain]) -> None:
    for name in names:
        if name not in known:
            raise StepFailed(
                f"domain {name!r} {unknown_name('domain', name, known)}", permanent=True
            )


def _check_files(context: WorkContext, domains: Sequence[Domain]) -> None:
    for domain in domains:
        staged = domain.staging
        if staged and not is_there(context.settings, staged.path, staged.byte_count):
            raise StepFailed(f"the staged snapshot of {domain.name} is damaged; refresh it again")


def _sentence(report: _Report) -> str:
    parts = []
    if report.published:
        shown = (f"{name} ({report.rows[name]:,} rows)" for name in report.published)
        parts.append(f"published {', '.join(shown)}")
    if report.unchanged:
        parts.append(f"{', '.join(report.unchanged)} published already")
    if report.never_refreshed:
        parts.append(f"{', '.join(report.never_refreshed)} never refreshed")
    parts += [f"{kind}: nothing staged" for kind in report.not_staged]
    return "; ".join(parts) or "the small app has no domains"


def _details(report: _Report) -> dict[str, Any]:
    return {
        "published": report.published,
        "unchanged": report.unchanged,
        "never_refreshed": report.never_refreshed,
        "rows": report.rows,
    }
