"""The checker accepts a history without violations, and catches each violation."""

import copy
import re
import sys
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.checker import RULES, violations
from tests.chaos.facts import Facts
from tests.ticks import MINUTE, SECOND

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


BROKEN: list[tuple[str, str, Break]] = [
    ("revisions_follow_each_other", "gap", changed("revisions", 1, number=3)),
    ("revisions_follow_each_other", "backwards", changed("revisions", 1, effective_from=minute(0))),
    ("revisions_follow_each_other", "quarantined", changed("actions", 0, quarantined="broken")),
    ("every_occurrence_has_one_outcome", "lost", without("operations", 1)),
    ("every_occurrence_has_one_outcome", "two_rows", one_more_row),
    ("every_occurrence_has_one_outcome", "two_spans", one_more_span),
    ("spans_end_at_occurrences", "between_two",
     changed("missed_spans", 0, last_at=minute(3) + SECOND)),
    ("operations_lie_on_occurrences", "paused", changed("revisions", 1, effective_from=minute(6))),
    ("operations_lie_on_occurrences", "wrong_revision", changed("operations", 1, revision=2)),
    ("what_was_asked_for_is_there", "lost", lost_run),
    ("ids_are_as_documented", "another", changed("operations", 1, id=str(uuid.UUID(int=1)))),
    ("every_operation_ended", "pending", changed("operations", 1, state="pending")),
    ("every_operation_ended", "no_reason", changed("operations", 1, reason=None)),
    ("every_operation_ended", "lost_too_often", changed("operations", 0, losses=5)),
    ("every_operation_ended", "open_attempt", changed("attempts", 2, finished_at=None)),
    ("attempts_are_consecutive", "gap", changed("attempts", 0, attempt=3)),
    ("attempts_are_consecutive", "ahead", changed("operations", 0, attempt=1)),
    ("attempts_are_consecutive", "missed_ran", changed("operations", 2, state="missed")),
    ("an_attempt_belongs_to_one_process", "two", logged(8, pid=77)),
    ("an_attempt_belongs_to_one_process", "again",
     put(10, line(minute(7), 1, 5, "second", "start"))),
    ("no_side_effect_without_a_running_attempt", "no_attempt", without("attempts", 2)),
    ("no_side_effect_without_a_running_attempt", "before", logged(6, at=minute(7) - SECOND)),
    ("no_side_effect_without_a_running_attempt", "after", logged(9, at=minute(9))),
    ("one_operation_of_an_action_runs_at_a_time", "two", at_once),
    ("what_must_not_repeat_began_once", "after_its_end", logged(3, what="end")),
    ("what_must_not_repeat_began_once", "after_a_cut", lambda facts: facts.log.__delitem__(3)),
    ("what_succeeded_is_not_repeated", "twice", put(4, line(minute(5), 2, 21, "first", "start"))),
    ("success_means_that_all_steps_ended", "no_end", lambda facts: facts.log.__delitem__(9)),
    ("success_means_that_all_steps_ended", "no_attempt", changed("attempts", 2, state="failed")),
    ("what_had_failed_ends_failed_or_better", "skipped",
     changed("operations", 0, state="skipped", reason="overlap")),
    ("a_failure_has_its_notice", "none", changed("operations", 2, state="failed", reason="no")),
    ("a_missed_occurrence_has_its_cause", "span", changed("missed_spans", 0, reason=None)),
    ("a_missed_occurrence_has_its_cause", "row", long_missed),
]  # fmt: skip


def test_a_history_without_violations_passes() -> None:
    assert violations(kept()) == []


def rules_broken(facts: Facts) -> set[str]:
    return {violation.split(":")[0] for violation in violations(facts)}


@pytest.mark.parametrize(
    ("rule", "breaks"),
    [pytest.param(rule, breaks, id=f"{rule}-{name}") for rule, name, breaks in BROKEN],
)
def test_a_violation_is_caught_by_its_rule(rule: str, breaks: Break) -> None:
    facts = kept()
    breaks(facts)

    assert rule in rules_broken(facts)


def test_every_rule_is_broken_at_least_once() -> None:
    assert {rule for rule, _, _ in BROKEN} == {rule.__name__ for rule in RULES}


def test_an_interrupted_run_may_overlap_the_next() -> None:
    facts = kept()
    at_once(facts)
    facts.tables["attempts"][1].update(state="lost")
    facts.tables["operations"][0].update(state="failed", reason="lost")

    assert violations(facts) == []


def test_the_checker_imports_none_of_our_code() -> None:
    parts = ("facts", "history", "occurrences")
    sources = [Path(__file__).with_name(f"{one}.py").read_text() for one in ("checker", *parts)]
    imported = re.findall(r"^ *(?:from|import) ([\w.]+)", "\n".join(sources), re.M)
    others = {one for one in imported if one.partition(".")[0] not in sys.stdlib_module_names}

    assert others == {f"tests.chaos.{one}" for one in parts}


def test_a_manual_run_has_the_requested_instant_and_must_exist() -> None:
    facts = kept()
    row = operation(minute(6) + 7 * SECOND, "skipped", id="any", reason="overlap")
    facts.tables["operations"].append({**row, "triggerer": "Manual run by x"})
    facts.journal.append({"what": "run", "operation": "any", "action": UID})
    assert violations(facts) == []

    facts.tables["operations"][-1]["triggerer"] = "t"

    assert "what_was_asked_for_is_there" in rules_broken(facts)


def clock(since: timedelta, until: timedelta, shift: timedelta = 0 * MINUTE) -> dict[str, Any]:
    """Return the journal's line for a clock shifted from `since` to `until` after the start."""
    return {"what": "clock", "since": START + since, "until": START + until, "shift": shift}


LOST = without("operations", 1)
# The clock goes back from a minute to another; what then breaks, and which rule sees it, if any.
BACK: dict[str, tuple[int, int, Break, str | None]] = {
    "lost": (6, 2, LOST, "every_occurrence_has_one_outcome"),
    "lost_after_a_small_step": (6, 4, LOST, "every_occurrence_has_one_outcome"),
    # The action changed in the stretch that was decided again: its occurrences are doubtful.
    "doubtful": (8, 2, LOST, None),
    "two_rows": (5, 4, one_more_row, "every_occurrence_has_one_outcome"),
    "before": (5, 4, without("missed_spans", 0), "every_occurrence_has_one_outcome"),
    "not_its_own": (8, 2, changed("operations", 1, revision=2), "operations_lie_on_occurrences"),
    "out_of_the_stretch": (
        *(8, 2, changed("revisions", 1, effective_from=minute(0))),
        "revisions_follow_each_other",
    ),
}


@pytest.mark.parametrize(("since", "back_to", "breaks", "rule"), BACK.values(), ids=BACK)
def test_a_violation_is_certain_or_doubtful_when_the_clock_goes_back(
    since: int, back_to: int, breaks: Break, rule: str | None
) -> None:
    until, after = since * MINUTE, back_to * MINUTE
    # It was soon right again.
    wrong = clock(until, until + SECOND, after - until)
    facts = kept()
    facts.journal.extend([clock(0 * MINUTE, until), wrong, clock(until + SECOND, 60 * MINUTE)])

    breaks(facts)

    assert rules_broken(facts) == set() if rule is None else rule in rules_broken(facts)


def test_times_of_steps_are_compared_with_the_database_s_clock() -> None:
    facts = kept()
    facts.journal.append(clock(-2 * 60 * MINUTE, 60 * MINUTE, 60 * MINUTE))
    for one in facts.log:
        one["at"] -= 60 * MINUTE
    assert violations(facts) == []

    logged(6, at=minute(7) - 60 * MINUTE - SECOND)(facts)

    assert rules_broken(facts) == {"no_side_effect_without_a_running_attempt"}
