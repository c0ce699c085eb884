"""The checker accepts a history without violations, and catches each violation."""

import ast
import sys
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.checker import RULES, violations
from tests.chaos.facts import Facts
from tests.chaos.histories import (
    START,
    UID,
    Break,
    at_once,
    changed,
    kept,
    line,
    logged,
    long_missed,
    lost_run,
    minute,
    one_more_row,
    one_more_span,
    operation,
    put,
    without,
)
from tests.ticks import MINUTE, SECOND

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
    wanted, seen = {"checker"}, set[str]()
    imported: set[str] = set()
    while wanted:
        seen.add(name := wanted.pop())
        tree = ast.parse((Path(__file__).parent / f"{name}.py").read_text())
        found = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        found += [
            one.name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import)
            for one in node.names
        ]
        names = {one for one in found if one is not None}
        wanted |= {one.rpartition(".")[2] for one in names if one.startswith("tests.chaos.")} - seen
        imported |= {one for one in names if one.partition(".")[0] not in sys.stdlib_module_names}

    assert seen == {"checker", "facts", "history", "lived", "occurrences"}
    assert imported - {f"tests.chaos.{name}" for name in seen} == {"psycopg"}


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
