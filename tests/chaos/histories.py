"""A history without violations, and ways to break it."""

import copy
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from tests.chaos.facts import Facts
from tests.ticks import SECOND

UID = "6f1d0c1e-0000-4000-8000-000000000001"
START = datetime(2026, 11, 23, 6, 0, 30, tzinfo=UTC)
STEPS = {"first": True, "second": {}, "never": "false"}
DOCUMENT = {
    "operations": STEPS,
    "when": {"cron_rule": "* * * * *", "timezone": "UTC"},
    "policy": {"overlap": "skip", "retry": {"max_attempts": 2}},
    "hooks": {"on_failure": [{"mail": "ops@example.com"}]},
}
Break = Callable[[Facts], None]


def minute(number: int) -> datetime:
    return START.replace(minute=0, second=0) + number * 60 * SECOND


def id_of(at: datetime) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{UID} | {at:%Y-%m-%dT%H:%M:%SZ}"))


def operation(at: datetime, state: str, attempt: int = 1, **changes: Any) -> dict[str, Any]:
    row = {
        "id": id_of(at), "action_uid": UID, "revision": 1, "occurrence_at": at, "subject": None,
        "event_id": None, "state": state, "reason": None, "error": None, "triggerer": "t",
        "attempt": attempt, "failures": 0, "losses": 0, "recorded_at": START,
        "finished_at": START, "backfill_id": None, "task": "execute_scheduled_action_quick",
    }  # fmt: skip
    return {**row, **changes}


def attempt(at: datetime, number: int, seconds: int, state: str) -> dict[str, Any]:
    begun = at + seconds * SECOND
    return {
        "operation_id": id_of(at), "attempt": number, "started_at": begun,
        "finished_at": begun + 10 * SECOND, "state": state, "error": None,
    }  # fmt: skip


def line(at: datetime, number: int, seconds: float, step: str, what: str) -> dict[str, Any]:
    return {
        "operation": id_of(at), "attempt": number, "step": step, "what": what, "pid": number,
        "repeatable": step != "second", "at": at + seconds * SECOND,
    }  # fmt: skip


def kept() -> Facts:
    """Return a history without violations: a success after a failure, one skipped, three missed."""
    tables: dict[str, list[dict[str, Any]]] = {
        "actions": [{"uid": UID, "deleted_at": None, "quarantined": None}],
        "revisions": [
            {"action_uid": UID, "number": 1, "document": DOCUMENT, "effective_from": START},
            {"action_uid": UID, "number": 2, "document": {**DOCUMENT, "active": False},
             "effective_from": minute(7) + SECOND},
        ],
        "action_cursor": [{"action_uid": UID, "watermark": minute(8)}],
        "operations": [
            operation(minute(5), "success", 2, failures=1),
            operation(minute(6), "skipped", reason="overlap"),
            operation(minute(7), "success"),
            operation(minute(4), "missed", reason="no daemon ticked"),
        ],
        "attempts": [
            attempt(minute(5), 1, 1, "failed"),
            attempt(minute(5), 2, 20, "success"),
            attempt(minute(7), 1, 1, "success"),
        ],
        "missed_spans": [
            {"action_uid": UID, "revision": 1, "first_at": minute(1), "last_at": minute(3),
             "reason": "no daemon ticked"},
        ],
        "notices": [{"operation_id": id_of(minute(5)), "kind": "run_ended"}],
        "ticks": [{"now": minute(0)}, *({"now": minute(5) + n * SECOND} for n in range(0, 181, 5))],
    }  # fmt: skip
    log = [
        line(minute(5), 1, 2, "first", "start"), line(minute(5), 1, 3, "first", "end"),
        line(minute(5), 1, 4, "second", "start"), line(minute(5), 1, 5, "second", "fail"),
        line(minute(5), 2, 21, "second", "start"), line(minute(5), 2, 22, "second", "end"),
        line(minute(7), 1, 2, "first", "start"), line(minute(7), 1, 3, "first", "end"),
        line(minute(7), 1, 4, "second", "start"), line(minute(7), 1, 5, "second", "end"),
    ]  # fmt: skip
    return copy.deepcopy(Facts(tables, log))


def changed(table: str, number: int, /, **values: Any) -> Break:
    return lambda facts: facts.tables[table][number].update(values)


def without(table: str, number: int) -> Break:
    return lambda facts: facts.tables[table].__delitem__(number)


def logged(number: int, /, **values: Any) -> Break:
    return lambda facts: facts.log[number].update(values)


def put(number: int, new: dict[str, Any]) -> Break:
    return lambda facts: facts.log.insert(number, new)


def one_more_span(facts: Facts) -> None:
    facts.tables["missed_spans"].append(facts.tables["missed_spans"][0])


def one_more_row(facts: Facts) -> None:
    facts.tables["operations"].append(operation(minute(7), "skipped", id="x", reason="twin"))


def lost_run(facts: Facts) -> None:
    facts.journal.append({"what": "run", "operation": "gone", "action": UID})


def at_once(facts: Facts) -> None:
    facts.log.append(facts.log.pop(5))


def long_missed(facts: Facts) -> None:
    """Let the daemon sleep for longer than any look-back, and an occurrence be just too late."""
    facts.tables["ticks"].append({"now": minute(0) - 20 * 60 * SECOND})
    facts.tables["missed_spans"][0].update(first_at=minute(-10), last_at=minute(-10))
    facts.tables["missed_spans"][0].update(reason="too late")
