"""The verdict: how an installation, or one small app, stands. Every door reads this one.

Each fault is a finding. The state is that of the worst one.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

import sqlalchemy as sa
from pydantic import Field

from models.action.health import REMEDIES
from models.notices import FindingKind
from models.problems import listed
from models.store import installation_facts, overview, tenants, workers
from models.store.actions.status import health_in, perhaps_unhealthy
from models.store.installation_facts import DAY
from models.store.scope import WHOLE_INSTALLATION, Scope
from runtime.config import Settings
from runtime.database import reading
from services.daemon import Daemon, daemon_in
from services.doctor.disk import disk_of
from services.installation import Installation
from services.lookup import find_app
from services.verdict.finding import OF_ACTIONS, Finding, Kind, Severity
from services.verdict.installation import Facts, findings_of
from services.view import View

# What waits for less is about to be taken.
WAITS_AT_LEAST = timedelta(seconds=15)
# The most findings about actions that are listed; `counts` has all.
MOST_ACTIONS = 100
# Names in a sentence.
MOST_NAMED = 5
TICKS = 120
WORDS: Mapping[Kind, str] = {
    Kind.QUARANTINED: "quarantined",
    Kind.ACTION_FAILED: "failed",
    Kind.ACTION_MISSED: "missed",
    Kind.ACTION_OVERDUE: "overdue",
    Kind.NEVER_RAN: "never ran",
}
# A quarantined action does nothing until somebody mends it.
_SEVERITIES = {FindingKind.QUARANTINED: Severity.BROKEN}


class State(StrEnum):
    """The verdict in a word."""

    OK = "ok"
    ATTENTION = "attention"
    BROKEN = "broken"


_OF_SEVERITY = {
    Severity.BROKEN: State.BROKEN,
    Severity.ATTENTION: State.ATTENTION,
    Severity.NOTE: State.OK,
}


class Verdict(View):
    """How an installation or a small app stands."""

    state: State = Field(description="That of the worst finding.")
    sentence: str = Field(description="The verdict in a sentence.")
    advice: str = Field(description="What to do about the worst finding; empty if all is well.")
    findings: tuple[Finding, ...] = Field(
        description="The worst first; at most 100 about single actions."
    )
    counts: dict[str, int] = Field(description="How many findings there are of each kind.")

    @property
    def unhealthy(self) -> int:
        """The number of unhealthy actions."""
        return sum(count for kind, count in self.counts.items() if kind in OF_ACTIONS)


class Snapshot(NamedTuple):
    """What a look at an installation found, at `now` by the database's clock."""

    now: datetime
    daemon: Daemon | None
    verdict: Verdict
    # What the verdict is made of, for those that show it too.
    facts: Facts


# What a tick's report says if something is wrong, perhaps since an earlier tick.
LASTING = frozenset({"broker_error", "application_broker_error", "older_release"})


def verdict_of_app(installation: Installation, app: str) -> Verdict:
    """Return the verdict on a small app; raises NotFound."""
    with reading(installation.engine) as connection:
        its = Scope(find_app(connection, installation, app).id)
        return assess(connection, installation.settings, its).verdict


def assess(
    connection: sa.Connection,
    settings: Settings,
    scope: Scope = WHOLE_INSTALLATION,
    apps: Mapping[int, str] | None = None,
) -> Snapshot:
    """Return the verdict on a scope, and the daemon; `apps` are the names of the small apps."""
    known = installation_facts.known(connection)
    if scope.small_app_id is not None:
        own = tuple(one for one in known.pauses if one.concerns(scope.small_app_id))
        known = replace(known, pauses=own)
    daemon = daemon_in(connection, settings, known.now)
    has_error = daemon is not None and not LASTING.isdisjoint(daemon.report or {})
    facts = Facts(
        known=known,
        daemon=daemon,
        ticks=overview.last_ticks(connection, TICKS) if has_error else (),
        readers=workers.readers(connection, settings.worker.lease, DAY),
        waiting=installation_facts.waiting(connection, scope, WAITS_AT_LEAST),
    )
    disk = disk_of(settings) if scope.small_app_id is None else None
    rows = perhaps_unhealthy(connection, scope)
    names = apps or ({one.id: one.name for one in tenants.listed(connection)} if rows else {})
    of_actions = (_of_action(row, settings.alert.after, names) for row in rows)
    found = [*findings_of(facts, settings, disk), *(one for one in of_actions if one is not None)]
    return Snapshot(known.now, daemon, verdict_of(found), facts)


def _of_action(
    row: Mapping[str, Any], alert_after: int, names: Mapping[int, str]
) -> Finding | None:
    health = health_in(row, alert_after)
    if health.trouble is None:
        return None
    return Finding(
        kind=Kind(health.trouble),
        severity=_SEVERITIES.get(health.trouble, Severity.ATTENTION),
        since=health.since,
        text=f"{row['name']}: {health.sentence}",
        remedy=REMEDIES[health.trouble],
        app=names.get(row["small_app_id"]),
        action=row["name"],
        uid=row["uid"],
        operation=row["trouble_id"],
        reason=row["trouble_reason"],
    )


def verdict_of(findings: Sequence[Finding]) -> Verdict:
    """Return the verdict that follows from all findings."""
    order = list(Severity)
    ranked = sorted(findings, key=lambda one: (order.index(one.severity), one.kind in OF_ACTIONS))
    worst = ranked[0].severity if ranked else Severity.NOTE
    state = _OF_SEVERITY[worst]
    sentence, advice = _said(ranked, state)
    return Verdict(
        state=state,
        sentence=sentence,
        advice=advice,
        findings=tuple(_bounded(ranked)),
        counts=dict(Counter(one.kind.value for one in ranked)),
    )


def _bounded(ranked: Iterable[Finding]) -> Iterable[Finding]:
    room = MOST_ACTIONS
    for one in ranked:
        if one.kind in OF_ACTIONS:
            room -= 1
            if room < 0:
                continue
        yield one


def _said(ranked: Sequence[Finding], state: State) -> tuple[str, str]:
    """Return the sentence and the advice: of the worst finding, or of all unhealthy actions."""
    if state is State.OK:
        return "All is well.", ""
    first = ranked[0]
    if first.kind not in OF_ACTIONS:
        return f"{_capital(first.text)}.", f"{_capital(first.remedy)}."
    actions = [one for one in ranked if one.kind in OF_ACTIONS]
    count = "1 action needs" if len(actions) == 1 else f"{len(actions):,} actions need"
    return f"{count} attention.", _named(actions)


def _named(findings: Sequence[Finding]) -> str:
    """Return which actions have which trouble, in one sentence for each kind."""
    kinds: dict[Kind, list[str]] = {}
    for one in findings:
        kinds.setdefault(one.kind, []).append(str(one.action))
    return " ".join(f"{WORDS[kind].capitalize()}: {_few(names)}." for kind, names in kinds.items())


def _few(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    shown = listed(names[:MOST_NAMED])
    return f"{shown} and {more:,} more" if more > 0 else shown


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


__all__ = [
    "Finding",
    "Kind",
    "Severity",
    "Snapshot",
    "State",
    "Verdict",
    "assess",
    "verdict_of",
    "verdict_of_app",
]
