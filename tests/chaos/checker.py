"""Independent rules for the behaviour of an installation.

They import none of our code, and read only the tables, the log of the steps, and the storm's
journal of its changes to the clock and to documents. A rule yields one line of text for each
violation.
"""

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import pairwise

from tests.chaos.facts import Facts, Row
from tests.chaos.history import History, is_of_application, true_instants
from tests.chaos.occurrences import is_true, occurrences

ENDED = {
    *("success", "partial", "failed", "cancelled", "skipped", "dropped", "missed"),
    # The end of what no worker follows is not known.
    "handed_over",
}
SAYS_WHY = {"cancelled", "skipped", "dropped", "missed", "failed"}
NEVER_TRIED = {"skipped", "dropped", "missed"}
WAITING_OVERLAPS = {"queue", "replace"}
MOST_LOSSES = 4
# The step of the action that every small app gets: it writes nothing to the log of the steps.
MAINTENANCE = "maintenance"
# The log has times of the steps' machine, the tables those of the database's clock.
SLACK = timedelta(milliseconds=100)
SECOND = timedelta(seconds=1)
TWO_TICKS = timedelta(seconds=10)
# Of the actions of a storm.
LONGEST_LOOK_BACK = timedelta(minutes=5)


def revisions_follow_each_other(history: History) -> Iterator[str]:
    for uid, revisions in history.revisions.items():
        numbers = [row["number"] for row in revisions]
        if numbers != list(range(1, len(numbers) + 1)):
            yield f"action {uid}: revisions are numbered {numbers}"
        for one, after in pairwise(row["effective_from"] for row in revisions):
            is_lived_again = any(it.has(one) and it.has(after) for it in history.undone)
            if after < one and not is_lived_again:
                yield f"action {uid}: a revision takes effect before the one it follows: {after}"
    for uid, action in history.actions.items():
        if action["quarantined"] and action["deleted_at"] is None:
            yield f"action {uid}: quarantined: {action['quarantined']}"


def every_occurrence_has_one_outcome(history: History) -> Iterator[str]:
    rows: dict[str, dict[datetime, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in history.scheduled:
        rows[row["action_uid"]][row["occurrence_at"]].append(row)
    spans: dict[str, list[Row]] = defaultdict(list)
    for row in history.facts.tables["missed_spans"]:
        spans[row["action_uid"]].append(row)
    for uid, expected in history.expected.items():
        for at, revision in expected.items():
            inside = [one for one in spans[uid] if one["first_at"] <= at <= one["last_at"]]
            has = len(rows[uid].get(at, ()))
            if has > 1 or (has == 0 and len(inside) != 1):
                problem = f"{at} has {has} operations and lies in {len(inside)} missed spans"
                yield f"action {uid} (revision {revision}): {problem}"
        for at, found in rows[uid].items():
            if len(found) > 1 and at not in expected:
                yield f"action {uid}: {at} has {len(found)} operations"


def spans_end_at_occurrences(history: History) -> Iterator[str]:
    for one in history.facts.tables["missed_spans"]:
        uid = one["action_uid"]
        if history.counts_from_end(uid):
            continue
        document = history.document_of(uid, one["revision"])
        for end in (one["first_at"], one["last_at"]):
            # A clock that went back may cut a span anywhere; after a small step, a change does so.
            may_be_cut = history.may_be_undone(end) or history.is_doubtful(uid, end)
            if not may_be_cut and end not in occurrences(document, uid, end - SECOND, end):
                yield f"action {uid}: a missed span ends at {end}, which is no occurrence"


def operations_lie_on_occurrences(history: History) -> Iterator[str]:
    for row in history.scheduled:
        uid, at = row["action_uid"], row["occurrence_at"]
        if history.counts_from_end(uid):
            continue
        if history.is_doubtful(uid, at):
            # A retry runs the revision of its time, and so does a backfill.
            if row["id"] not in history.retried and at not in occurrences(
                history.document(row), uid, at - SECOND, at
            ):
                yield f"operation {row['id']}: {at} is no occurrence of its own revision"
            continue
        revision = history.expected[uid].get(at)
        if revision is None and not row["backfill_id"]:
            yield f"operation {row['id']}: {at} is no occurrence of its action"
        elif revision != row["revision"] and row["id"] not in history.retried:
            problem = f"recorded with revision {row['revision']}, due in {revision}"
            yield f"operation {row['id']}: {problem}"


def what_was_asked_for_is_there(history: History) -> Iterator[str]:
    asked = {row["operation"] for row in history.facts.journal if row["what"] == "run"}
    for id in asked:
        row = history.operations.get(id)
        if row is None or not history.is_manual(row):
            yield f"operation {id}: asked for and confirmed, but not there"


def ids_are_as_documented(history: History) -> Iterator[str]:
    for row in history.scheduled:
        instant = row["occurrence_at"].strftime("%Y-%m-%dT%H:%M:%SZ")
        parts = [row["action_uid"], instant, row["subject"], row["event_id"]]
        text = " | ".join(part for part in parts if part is not None)
        if row["id"] != str(uuid.uuid5(uuid.NAMESPACE_OID, text)):
            yield f"operation {row['id']}: not the id of {text!r}"


def every_operation_ended(history: History) -> Iterator[str]:
    for row in history.operations.values():
        if row["state"] not in ENDED:
            yield f"operation {row['id']}: stands in {row['state']}"
        elif row["state"] in SAYS_WHY and not (row["reason"] or row["error"]):
            yield f"operation {row['id']}: {row['state']} without a reason"
        if row["losses"] > MOST_LOSSES:
            yield f"operation {row['id']}: lost {row['losses']} times"
    for (id, attempt), row in history.attempts.items():
        if row["finished_at"] is None or row["state"] == "running":
            yield f"operation {id}: attempt {attempt} never ended"


def attempts_are_consecutive(history: History) -> Iterator[str]:
    for id, row in history.operations.items():
        numbers = [one["attempt"] for one in history.attempts_of(id)]
        policy = history.policy(row)
        waits = policy["overlap"] in WAITING_OVERLAPS or policy["catch_up"] == "all"
        # An operation that had to wait, as a retry does, has attempt numbers without a start; one
        # that a pause put back too, and a task that perhaps was never sent.
        is_put_back = id in history.retried or history.was_paused or is_of_application(row)
        if not (waits or is_put_back) and numbers != list(range(1, len(numbers) + 1)):
            yield f"operation {id}: attempts {numbers} are not consecutive"
        if numbers and numbers[-1] > row["attempt"]:
            yield f"operation {id}: attempt {numbers[-1]} started, its row says {row['attempt']}"
        if numbers and row["state"] == "missed":
            yield f"operation {id}: missed, yet attempts {numbers} started"


def an_attempt_belongs_to_one_process(history: History) -> Iterator[str]:
    for (id, attempt), lines in history.lines.items():
        pids = {line["pid"] for line in lines}
        if len(pids) > 1:
            yield f"operation {id}: attempt {attempt} ran in the processes {sorted(pids)}"
        starts = [line["step"] for line in lines if line["what"] == "start"]
        if len(starts) != len(set(starts)):
            yield f"operation {id}: attempt {attempt} began a step twice: {starts}"


def no_side_effect_without_a_running_attempt(history: History) -> Iterator[str]:
    for key, lines in history.lines.items():
        id, attempt = key
        row = history.attempts.get(key)
        if row is None:
            yield f"operation {id}: attempt {attempt} left {len(lines)} lines, but never started"
            continue
        began = true_instants(history.facts.journal, row["started_at"])
        if all(lines[0]["at"] < at - SLACK for at in began):
            yield f"operation {id}: attempt {attempt} did something before its start"
        if row["finished_at"] is None or history.was_cut_off(key):
            continue
        ended = true_instants(history.facts.journal, row["finished_at"])
        if all(lines[-1]["at"] > at + SLACK for at in ended):
            yield f"operation {id}: attempt {attempt} did something after its end"


def one_operation_of_an_action_runs_at_a_time(history: History) -> Iterator[str]:
    runs: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for key, lines in history.lines.items():
        row = history.operations.get(key[0])
        if row is None or key not in history.attempts or history.was_cut_off(key):
            continue
        # It may have had another policy.
        if key[0] in history.retried and key[1] < row["attempt"]:
            continue
        if history.policy(row)["overlap"] != "allow":
            run = (lines[0]["number"], lines[-1]["number"], key[0])
            runs[row["action_uid"]].append(run)
    for uid, found in runs.items():
        found.sort()
        for (_, end, one), (start, _, other) in pairwise(found):
            if start < end:
                yield f"action {uid}: operations {one} and {other} ran at once"


def what_must_not_repeat_began_once(history: History) -> Iterator[str]:
    last: dict[tuple[str, str], str] = {}
    for line in history.facts.log:
        # Who asks for it once more means it.
        if line["operation"] in history.retried:
            continue
        key = (line["operation"], line["step"])
        # A step that failed or stopped by itself has ended: a retry may begin it again.
        if line["what"] == "start" and not line["repeatable"] and last.get(key) in {"start", "end"}:
            yield f"operation {key[0]}: step {key[1]}, not repeatable, began twice"
        last[key] = line["what"]


def what_succeeded_is_not_repeated(history: History) -> Iterator[str]:
    passed: set[tuple[str, str]] = set()
    for (id, attempt), lines in sorted(history.lines.items()):
        for line in lines:
            is_kept = (id, line["step"]) in passed and id not in history.retried
            if line["what"] == "start" and is_kept:
                yield f"operation {id}: attempt {attempt} began step {line['step']} after its end"
        # A step begins only after the recorded end of the one before.
        passed |= {
            (id, one["step"])
            for one, after in pairwise(lines)
            if one["what"] == "end" and after["what"] == "start"
        }


def success_means_that_all_steps_ended(history: History) -> Iterator[str]:
    for id, row in history.operations.items():
        if row["state"] not in {"success", "partial"}:
            continue
        attempts = history.attempts_of(id)
        if not attempts or attempts[-1]["state"] != row["state"]:
            yield f"operation {id}: {row['state']}, unlike its last attempt"
        wanted = {
            name
            for name, what in history.document(row)["operations"].items()
            if name != MAINTENANCE and is_true(what)
        }
        ended = {
            line["step"]
            for attempt in attempts
            for line in history.lines[id, attempt["attempt"]]
            if line["what"] == "end"
        }
        if row["state"] == "success" and not wanted <= ended:
            yield f"operation {id}: success without an end of {sorted(wanted - ended)}"


def what_had_failed_ends_failed_or_better(history: History) -> Iterator[str]:
    for (id, attempt), row in history.attempts.items():
        state = history.operations[id]["state"]
        has_failed = row["state"] == "failed" and not history.was_cut_off((id, attempt))
        if has_failed and state in NEVER_TRIED and id not in history.retried:
            yield f"operation {id}: attempt {attempt} failed, yet it ended {state}"


def a_failure_has_its_notice(history: History) -> Iterator[str]:
    noticed = {
        row["operation_id"] for row in history.facts.tables["notices"] if row["kind"] == "run_ended"
    }
    for id, row in history.operations.items():
        hooks = history.document(row).get("hooks") or {}
        if row["state"] == "failed" and hooks.get("on_failure") and id not in noticed:
            yield f"operation {id}: failed, and no notice says so"


def a_missed_occurrence_has_its_cause(history: History) -> Iterator[str]:
    # A tick that recorded something and could not report it was no outage.
    recorded = [row["recorded_at"] for row in history.scheduled]
    ticked = [row["now"] for row in history.facts.tables["ticks"]]
    first, ticks = min(ticked, default=None), sorted([*ticked, *recorded])
    # Before its first tick, an installation has no outage.
    outages = [
        (one, after)
        for one, after in pairwise(ticks)
        if first is not None and one >= first and after - one > TWO_TICKS
    ]
    missed = [
        (row["action_uid"], row["occurrence_at"], row["reason"])
        for row in history.scheduled
        if row["state"] == "missed"
    ]
    spans = history.facts.tables["missed_spans"]
    missed += [(row["action_uid"], row["last_at"], row["reason"]) for row in spans]
    for uid, at, reason in missed:
        is_certain = not (history.is_repeated(at) or history.is_doubtful(uid, at))
        in_outage = any(one < at <= after - LONGEST_LOOK_BACK for one, after in outages)
        if not reason or (reason == "too late" and is_certain and in_outage):
            yield f"action {uid}: {at} was missed, and its reason is {reason!r}"


RULES: tuple[Callable[[History], Iterator[str]], ...] = (
    revisions_follow_each_other,
    every_occurrence_has_one_outcome,
    spans_end_at_occurrences,
    operations_lie_on_occurrences,
    what_was_asked_for_is_there,
    ids_are_as_documented,
    every_operation_ended,
    attempts_are_consecutive,
    an_attempt_belongs_to_one_process,
    no_side_effect_without_a_running_attempt,
    one_operation_of_an_action_runs_at_a_time,
    what_must_not_repeat_began_once,
    what_succeeded_is_not_repeated,
    success_means_that_all_steps_ended,
    what_had_failed_ends_failed_or_better,
    a_failure_has_its_notice,
    a_missed_occurrence_has_its_cause,
)


def violations(facts: Facts) -> list[str]:
    """Return the violations of all rules, each with the name of its rule."""
    history = History(facts)
    return [f"{rule.__name__}: {violation}" for rule in RULES for violation in rule(history)]
