"""The laws of a world that has come to rest: what its tables and the doors must say."""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from uuid import UUID

from runtime.database import reading
from scheduler.explain import explain
from services.verdict import assess
from services.verdict.finding import OF_ACTIONS, Kind, Severity
from tests.chaos.checker import violations
from tests.chaos.facts import instant_of
from tests.chaos.history import History, is_of_application
from tests.chaos.occurrences import offset, span

if TYPE_CHECKING:
    from tests.worlds.world import World

# What a world leaves behind although all is well again.
LASTING = frozenset(
    {*OF_ACTIONS, Kind.WORKERS_LOST, Kind.NOTICE_REFUSED, Kind.STEP_FAILED, Kind.DATABASE_WENT_BACK}
) - {Kind.QUARANTINED, Kind.ACTION_OVERDUE}
# Of those of the small app that is always there, and of what no world has.
NOT_MEANT = frozenset({Kind.DISK, Kind.MAIL_UNSET})
# Instants that only the past can have.
PAST = (
    ("action_cursor", "watermark"),
    ("operations", "recorded_at"),
    ("operations", "first_started_at"),
    ("operations", "finished_at"),
    ("revisions", "effective_from"),
    ("ticks", "now"),
    ("findings", "began_at"),
)
OVERTAKEN = "overtaken"
# Instants that explain is asked about.
ASKED_PER_ACTION = 6
# How the error of a lost attempt begins, also where a cancel took effect with it.
LOSSES = ("lost", "database unavailable")
# Faults after which an end may lie at another instant than it was written with.
MOVES_TIME = {"set clock forward", "set clock back", "tick ahead", "restore"}
# In the reason of what is missed because nothing ticked.
DOWNTIME = "no daemon ticked"
# What explain calls an instant that no operation was recorded for.
UNRECORDED = {"missed", "paused", "deleted", "quarantined", "unrecorded", "pruned"}


def losses_and_failures_are_counted(world: "World", history: History) -> Iterator[str]:
    for id, row in history.operations.items():
        # A task of the application counts as failed if nobody knows whether it was sent.
        if id in history.retried or is_of_application(row):
            continue
        ends = history.attempts_of(id)
        bad = sum(
            one["state"] == "failed" or (one["error"] or "").startswith(LOSSES) for one in ends
        )
        counted = row["losses"] + row["failures"]
        if counted != bad:
            yield f"operation {id}: {counted} losses and failures, and {bad} attempts ended so"


def nothing_lies_ahead(world: "World", _history: History) -> Iterator[str]:
    now = world.now() + timedelta(seconds=1)
    for table, column in PAST:
        ((last,),) = world.database.rows(f"SELECT max({column}) FROM {table}")
        at = last and instant_of(last)
        if at and at > now:
            yield f"{table}.{column} is {at}, and it is {world.now()}"


def notices_are_sent_once(world: "World", history: History) -> Iterator[str]:
    told = Counter(world.crew.told)
    columns = "id, kind, operation_id, target, state, finding_id, tries, error"
    owed = Counter[tuple[Any, ...]]()
    is_restored = any(one.kind == "restore" for one in world.plan.faults)
    for id, kind, operation, target, state, finding, tries, error in world.database.rows(
        f"SELECT {columns} FROM notices"
    ):
        number = told[str(id)]
        if state != "done":
            yield f"notice {id} of {kind} is {state} after {tries} tries: {error}"
        elif not number and kind != "finding_began":
            # One of a finding that has ended is not sent any more.
            yield f"notice {id} of {kind} is done, and nobody was told"
        elif number > tries and not is_restored:
            yield f"notice {id} of {kind} was told {number} times, and tried {tries} times"
        if operation and finding is None and str(operation) not in history.retried:
            owed[str(operation), kind, str(target)] += 1
    for what, number in owed.items():
        if number > 1:
            yield f"operation {what[0]}: {number} notices of {what[1]}"


def what_was_missed_is_told(world: "World", history: History) -> Iterator[str]:
    told = {
        str(uid)
        for uid, payload in world.database.rows("SELECT action_uid, payload FROM notices")
        if "action_missed" in str(payload)
    }
    rows = [row for row in history.scheduled if row["state"] == "missed"]
    missed = {
        row["action_uid"]
        for row in [*rows, *history.facts.tables["missed_spans"]]
        if DOWNTIME in row["reason"]
    }
    for uid in missed - told:
        newest = history.revisions[uid][-1]["document"]
        if history.actions[uid]["deleted_at"] is None and newest.get("hooks"):
            yield f"action {uid} missed something, and nobody was told"


def a_task_is_sent_once_in_an_attempt(world: "World", _history: History) -> Iterator[str]:
    if not any(one.kind == "restore" for one in world.plan.faults):
        yield from (f"{key} was sent to the application again" for key in world.post.repeated)


def what_was_overtaken_has_a_newer_one(world: "World", history: History) -> Iterator[str]:
    if any(one.kind in MOVES_TIME for one in world.plan.faults):
        return
    sent = [row for row in history.scheduled if row["state"] != "missed"]
    for row in history.scheduled:
        reason, at, recorded_at = str(row["reason"]), row["occurrence_at"], row["recorded_at"]
        if row["state"] != "missed" or not reason.startswith(OVERTAKEN):
            continue
        newer = (
            one["action_uid"] == row["action_uid"] and at < one["occurrence_at"] <= recorded_at
            for one in sent
        )
        if not any(newer):
            yield f"operation {row['id']}: {reason}, and nothing newer was sent"


def the_verdict_is_calm(world: "World", _history: History) -> Iterator[str]:
    with reading(world.engine) as connection:
        seen = assess(connection, world.settings)
    for one in seen.verdict.findings:
        is_past = one.kind is Kind.CLOCK and " ahead until " in one.text
        is_past |= one.kind is Kind.QUEUE_UNREAD and not world.plan.followers
        if one.kind in LASTING | NOT_MEANT or one.severity is Severity.NOTE or is_past:
            continue
        yield f"{one.kind}: {one.text}"


def explain_agrees(world: "World", history: History) -> Iterator[str]:
    for uid, expected in history.expected.items():
        instants = sorted(expected)
        some = world.loom.random.sample(instants, min(len(instants), ASKED_PER_ACTION))
        for at in some:
            yield from _explained(world, history, uid, at)


def _explained(world: "World", history: History, uid: str, at: datetime) -> Iterator[str]:
    with reading(world.engine) as connection:
        said = explain(UUID(uid), at, connection, world.settings)
    row = history.operations.get(history.id_of(uid, at))
    if row is None and said.verdict not in UNRECORDED:
        yield f"action {uid}, {at}: no operation, and explain says {said.verdict}: {said.text}"
    elif row is not None and said.verdict != row["state"]:
        yield f"action {uid}, {at}: {row['state']}, and explain says {said.verdict}: {said.text}"
    elif row is not None and row["reason"] and row["reason"] not in said.text:
        yield f"action {uid}, {at}: for {row['reason']!r}, and explain says {said.text!r}"


def what_counts_from_ends_is_due_by_them(world: "World", history: History) -> Iterator[str]:
    if any(one.kind in MOVES_TIME for one in world.plan.faults):
        return
    for uid in filter(history.counts_from_end, history.actions):
        rows = [row for row in history.operations.values() if row["action_uid"] == uid]
        if any(history.is_manual(row) or row["id"] in history.retried for row in rows):
            continue
        for one, after in pairwise(sorted(rows, key=lambda row: row["occurrence_at"])):
            rule = history.document(after)["when"]
            if one["revision"] != after["revision"] or "from" not in rule:
                continue
            # A task that was handed over may tell of its end later.
            if one["finished_at"] > after["recorded_at"]:
                continue
            ended_at = one["finished_at"] + span(rule["every"])
            due = _rounded_up(ended_at) + offset(uid, span(rule["jitter"]))
            if after["occurrence_at"] != due:
                yield f"operation {after['id']}: due at {due}, and it is {after['occurrence_at']}"


def _rounded_up(at: datetime) -> datetime:
    whole = at.replace(microsecond=0)
    return whole if whole == at else whole + timedelta(seconds=1)


def what_a_pause_held_is_sent(world: "World", history: History) -> Iterator[str]:
    for id in world.watch.held:
        row = history.operations.get(id)
        if row is None or id in history.retried or history.attempts_of(id):
            continue
        is_told = row["state"] in {"handed_over", "cancelled"}
        if not is_told and not str(row["reason"]).startswith(RIGHT_AFTER_A_PAUSE):
            yield f"operation {id} waited for the end of a pause: {row['state']}, {row['reason']}"


RIGHT_AFTER_A_PAUSE = (
    "overtaken",
    "overlap",
    "tolerance",
    "paused",
    "the action was deleted",
    "no other attempt",
    "send uncertain",
)
Law = Callable[["World", History], Iterator[str]]
LAWS: tuple[Law, ...] = (
    losses_and_failures_are_counted,
    nothing_lies_ahead,
    notices_are_sent_once,
    what_was_missed_is_told,
    a_task_is_sent_once_in_an_attempt,
    what_was_overtaken_has_a_newer_one,
    the_verdict_is_calm,
    explain_agrees,
    what_counts_from_ends_is_due_by_them,
    what_a_pause_held_is_sent,
)


def broken(world: "World") -> list[str]:
    """Return what breaks a law, each with the law's name."""
    facts = world.facts()
    history = History(facts)
    found = [f"{law.__name__}: {one}" for law in LAWS for one in law(world, history)]
    return [*found, *violations(facts)]
