"""The checker with changes of the clock, and manual runs."""

from datetime import timedelta
from typing import Any

import pytest

from tests.chaos.checker import violations
from tests.chaos.facts import Facts
from tests.chaos.histories import (
    DOCUMENT,
    START,
    UID,
    Break,
    changed,
    kept,
    logged,
    minute,
    one_more_row,
    operation,
    without,
)
from tests.ticks import MINUTE, SECOND

Row = dict[str, Any]


def clock(since: timedelta, until: timedelta, shift: timedelta = 0 * MINUTE) -> Row:
    """Return the journal's line for a clock shifted from `since` to `until` after the start."""
    return {"what": "clock", "since": START + since, "until": START + until, "shift": shift}


def with_journal(*rows: Row) -> Facts:
    facts = kept()
    facts.journal.extend(rows)
    return facts


def lived_again(after: timedelta, until: timedelta) -> list[Row]:
    """Return the journal of a clock that went back from `until` to `after`, and was soon right."""
    wrong = clock(until, until + SECOND, after - until)
    return [clock(0 * MINUTE, until), wrong, clock(until + SECOND, 60 * MINUTE)]


def asked(facts: Facts, **changes: Any) -> Row:
    """Record a manual run that was skipped (overlap); return the journal's confirmation."""
    row = operation(minute(6) + 7 * SECOND, "skipped", id="any", reason="overlap")
    facts.tables["operations"].append({**row, "triggerer": "Manual run by x", **changes})
    return {"what": "run", "operation": "any", "action": UID}


def rules_broken(facts: Facts) -> set[str]:
    return {violation.split(":")[0] for violation in violations(facts)}


def test_a_manual_run_has_the_requested_instant() -> None:
    facts = kept()
    facts.journal.append(asked(facts))

    assert violations(facts) == []


@pytest.mark.parametrize("changes", [{"id": "other"}, {"triggerer": "t"}], ids=["gone", "not_ours"])
def test_a_confirmed_manual_run_must_exist(changes: Row) -> None:
    facts = kept()
    facts.journal.append(asked(facts, **changes))

    assert "what_was_asked_for_is_there" in rules_broken(facts)


LOST, LATER = without("operations", 1), changed("revisions", 1, effective_from=minute(6))
# The clock goes back from a minute to another; what then breaks, and which rule sees it, if any.
BACK: dict[str, tuple[int, int, Break, str | None]] = {
    "all_is_well": (6, 2, lambda facts: None, None),
    "lost": (6, 2, LOST, "every_occurrence_has_one_outcome"),
    "lost_after_a_small_step": (6, 4, LOST, "every_occurrence_has_one_outcome"),
    # The action changed in the stretch that was decided again: its occurrences are doubtful.
    "doubtful": (8, 2, LOST, None),
    "doubtful_after_a_small_step": (8, 4, LOST, None),
    "not_paused": (8, 2, changed("revisions", 1, document=DOCUMENT), None),
    "deleted": (8, 2, changed("actions", 0, deleted_at=minute(6)), None),
    "decided_ahead_of_a_deletion": (
        8,
        4,
        changed("actions", 0, deleted_at=minute(6) - SECOND),
        None,
    ),
    "changed_earlier": (8, 2, LATER, None),
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
    facts = with_journal(*lived_again(back_to * MINUTE, since * MINUTE))

    breaks(facts)

    assert rules_broken(facts) == set() if rule is None else rule in rules_broken(facts)


def test_a_revision_may_take_effect_earlier_when_the_clock_goes_back() -> None:
    facts = with_journal(*lived_again(3 * MINUTE, 9 * MINUTE))
    paused = {**DOCUMENT, "active": False}
    facts.tables["revisions"].append(
        {"action_uid": UID, "number": 3, "document": paused, "effective_from": minute(5)}
    )

    assert violations(facts) == []


def test_times_of_steps_are_compared_with_the_database_s_clock() -> None:
    facts = with_journal(clock(-2 * 60 * MINUTE, 60 * MINUTE, 60 * MINUTE))
    for line in facts.log:
        line["at"] -= 60 * MINUTE
    assert violations(facts) == []

    logged(6, at=minute(7) - 60 * MINUTE - SECOND)(facts)

    assert rules_broken(facts) == {"no_side_effect_without_a_running_attempt"}
