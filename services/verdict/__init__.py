"""The verdict: how an installation, or one small app, stands. Every door reads this one.

Each fault is a finding. The state is that of the worst one.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

import sqlalchemy as sa
from pydantic import Field

from broker.celery_rules import has_one_broker
from models.hints import listed
from models.store import installation_facts, overview, pauses, tenants, workers
from models.store.actions.status import perhaps_unhealthy
from models.store.installation_facts import DAY
from models.store.operations.eta import slow_runs
from models.store.scope import WHOLE_INSTALLATION, Scope
from runtime.config import Settings
from runtime.database import reading
from services.daemon import Daemon, daemon_in
from services.doctor.disk import disk_of
from services.installation import Installation
from services.lookup import find_app
from services.verdict.actions import of_action, of_run
from services.verdict.causes import folded
from services.verdict.facts import MOST_DUE, Facts
from services.verdict.finding import OF_ACTIONS, Consequence, Finding, Kind, Severity
from services.verdict.installation import findings_of
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
    Kind.RUN_SLOW: "slow",
}


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


_RANKS = {one: rank for rank, one in enumerate(Severity)}


class Verdict(View):
    """How an installation or a small app stands."""

    state: State = Field(description="That of the worst finding.")
    sentence: str = Field(description="The verdict in a sentence.")
    advice: str = Field(description="What to do about the worst finding; empty if all is well.")
    findings: tuple[Finding, ...] = Field(
        description="The worst first, without what follows from another; at most 100 about "
        "single actions."
    )
    counts: dict[str, int] = Field(
        description="How many findings there are of each kind, with what follows from another."
    )

    @property
    def unhealthy(self) -> int:
        """The number of unhealthy actions."""
        return sum(count for kind, count in self.counts.items() if kind in OF_ACTIONS)


class Snapshot(NamedTuple):
    """What a look at an installation found, at `now` by the database's clock."""

    now: datetime
    daemon: Daemon | None
    verdict: Verdict
    # All of it, what follows from something else too.
    findings: Sequence[Finding]
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
    is_idle = daemon is None or not daemon.is_ticking
    waiting = pauses.waiting(connection, [one.target for one in known.pauses], scope)
    facts = Facts(
        known=known,
        daemon=daemon,
        ticks=overview.last_ticks(connection, TICKS) if has_error else (),
        readers=workers.readers(connection, settings.worker.lease, DAY),
        waiting=installation_facts.waiting(connection, scope, WAITS_AT_LEAST),
        overtaken=installation_facts.overtaken(connection, scope, WAITS_AT_LEAST),
        due=installation_facts.due(connection, scope, MOST_DUE) if is_idle else 0,
        paused=list(zip(known.pauses, waiting, strict=True)),
    )
    disk = disk_of(settings) if scope.small_app_id is None else None
    rows = perhaps_unhealthy(connection, scope)
    slow = slow_runs(connection, scope, settings.alert.overdue)
    is_named = bool(rows or slow)
    names = apps or ({one.id: one.name for one in tenants.listed(connection)} if is_named else {})
    of_actions = (of_action(row, settings.alert.after, names) for row in rows)
    found = [
        *findings_of(facts, settings, disk),
        *(of_run(one, names) for one in slow),
        *(one for one in of_actions if one is not None),
    ]
    verdict = verdict_of(found, has_one_broker=has_one_broker(settings))
    return Snapshot(known.now, daemon, verdict, found, facts)


def verdict_of(findings: Sequence[Finding], *, has_one_broker: bool = True) -> Verdict:
    """Return the verdict that follows from all findings: causes first.

    `has_one_broker`: the Celery application shares the broker of our own queues.
    """
    roots = folded(findings, has_one_broker=has_one_broker)
    ranked = sorted(roots, key=lambda one: (_RANKS[_worst(one)], one.kind in OF_ACTIONS))
    state = _OF_SEVERITY[_worst(ranked[0]) if ranked else Severity.NOTE]
    sentence, advice = _said(ranked, state)
    return Verdict(
        state=state,
        sentence=sentence,
        advice=advice,
        findings=tuple(_bounded(ranked)),
        counts=dict(Counter(one.kind.value for one in findings)),
    )


def _worst(one: Finding) -> Severity:
    """Return the severity of a finding, or of what follows from it."""
    severities = (one.severity, *(each.severity for each in one.consequences))
    return min(severities, key=_RANKS.__getitem__)


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
    "Consequence",
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
