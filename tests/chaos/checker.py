"""An independent judge of what an installation did.

It imports nothing of ours and reads only the tables and the log that the steps write. A rule
yields one line of text for each violation; no line means that the promise was kept.
"""

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import cached_property
from itertools import pairwise

from tests.chaos.facts import Facts, Row
from tests.chaos.occurrences import is_true, occurrences

ENDED = {"success", "partial", "failed", "cancelled", "skipped", "dropped", "missed"}
SAYS_WHY = {"cancelled", "skipped", "dropped", "missed", "failed"}
WAITING_OVERLAPS = {"queue", "replace"}
MOST_LOSSES = 4
# The log is stamped by the steps' machine, the tables by the database's clock.
SLACK = timedelta(milliseconds=100)
Key = tuple[str, int]


class History:
    """The facts, sorted by what they are about."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.actions = {row["uid"]: row for row in facts.tables["actions"]}
        self.operations = {row["id"]: row for row in facts.tables["operations"]}
        self.attempts: dict[Key, Row] = {
            (row["operation_id"], row["attempt"]): row for row in facts.tables["attempts"]
        }
        self.lines: dict[Key, list[Row]] = defaultdict(list)
        for number, line in enumerate(facts.log):
            key = (line["operation"], line["attempt"])
            self.lines[key].append({**line, "number": number})

    @cached_property
    def revisions(self) -> dict[str, list[Row]]:
        """The revisions of each action, oldest first."""
        found: dict[str, list[Row]] = defaultdict(list)
        for row in sorted(self.facts.tables["revisions"], key=lambda row: row["number"]):
            found[row["action_uid"]].append(row)
        return found

    @cached_property
    def expected(self) -> dict[str, dict[datetime, int]]:
        """The occurrences of each action until the last tick: which revision had it due."""
        watermarks = {
            row["action_uid"]: row["watermark"] for row in self.facts.tables["action_cursor"]
        }
        ticked = max((row["now"] for row in self.facts.tables["ticks"]), default=None)
        return {
            uid: self._expected_of(uid, max(filter(None, (watermarks[uid], ticked))))
            for uid in self.actions
        }

    def _expected_of(self, uid: str, until: datetime) -> dict[datetime, int]:
        revisions = self.revisions[uid]
        until = self.actions[uid]["deleted_at"] or until
        ends = [*(row["effective_from"] for row in revisions[1:]), until]
        return {
            at: row["number"]
            for row, end in zip(revisions, ends, strict=True)
            for at in occurrences(row["document"], uid, row["effective_from"], min(end, until))
        }

    def document(self, operation: Row) -> Row:
        """Return the document that an operation runs."""
        found: Row = self.revisions[operation["action_uid"]][operation["revision"] - 1]["document"]
        return found

    def policy(self, operation: Row) -> Row:
        """Return its policy, with the defaults that the rules need."""
        policy = self.document(operation).get("policy") or {}
        return {"overlap": "skip", "catch_up": "latest", **policy}

    def attempts_of(self, id: str) -> list[Row]:
        """Return an operation's attempts, in order."""
        found = [row for (operation, _), row in self.attempts.items() if operation == id]
        return sorted(found, key=lambda row: row["attempt"])

    def was_cut_off(self, key: Key) -> bool:
        """Whether an attempt was ended by another than its own step."""
        attempt = self.attempts[key]
        error = attempt["error"] or ""
        lines = self.lines[key]
        return (
            attempt["state"] not in {"success", "partial", "failed"}
            or error.startswith(("lost", "time limit", "the worker stopped"))
            or not lines
            or lines[-1]["what"] == "start"
        )


def revisions_follow_each_other(history: History) -> Iterator[str]:
    for uid, revisions in history.revisions.items():
        numbers = [row["number"] for row in revisions]
        if numbers != list(range(1, len(numbers) + 1)):
            yield f"action {uid}: revisions are numbered {numbers}"
        instants = [row["effective_from"] for row in revisions]
        if instants != sorted(instants):
            yield f"action {uid}: a revision takes effect before the one it follows: {instants}"
    for uid, action in history.actions.items():
        if action["set_aside"]:
            yield f"action {uid}: set aside: {action['set_aside']}"


def every_occurrence_has_one_outcome(history: History) -> Iterator[str]:
    rows: dict[str, dict[datetime, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in history.operations.values():
        rows[row["action_uid"]][row["occurrence_at"]].append(row)
    spans: dict[str, list[Row]] = defaultdict(list)
    for row in history.facts.tables["missed_spans"]:
        spans[row["action_uid"]].append(row)
    for uid, expected in history.expected.items():
        for at, revision in expected.items():
            inside = [one for one in spans[uid] if one["first_at"] <= at <= one["last_at"]]
            has = len(rows[uid].get(at, ()))
            if has > 1 or (has == 0 and len(inside) != 1):
                told = f"{at} has {has} operations and lies in {len(inside)} missed spans"
                yield f"action {uid} (revision {revision}): {told}"
        yield from _spans_count_what_has_no_row(uid, expected, set(rows[uid]), spans[uid])


def _spans_count_what_has_no_row(
    uid: str, expected: dict[datetime, int], recorded: set[datetime], spans: list[Row]
) -> Iterator[str]:
    rowless = {at for at in expected if at not in recorded}
    for one in spans:
        inside = sorted(at for at in rowless if one["first_at"] <= at <= one["last_at"])
        ends = (inside[0], inside[-1]) if inside else None
        if len(inside) != one["count"] or ends != (one["first_at"], one["last_at"]):
            yield f"action {uid}: a missed span says {one['count']}, {len(inside)} are in it"


def operations_lie_on_occurrences(history: History) -> Iterator[str]:
    for row in history.operations.values():
        revision = history.expected[row["action_uid"]].get(row["occurrence_at"])
        if revision is None:
            yield f"operation {row['id']}: {row['occurrence_at']} is no occurrence of its action"
        elif revision != row["revision"]:
            told = f"recorded with revision {row['revision']}, due in {revision}"
            yield f"operation {row['id']}: {told}"


def ids_are_as_documented(history: History) -> Iterator[str]:
    for row in history.operations.values():
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
        # An operation that had to wait has numbers without a start.
        if not waits and numbers != list(range(1, len(numbers) + 1)):
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
        if lines[0]["at"] < row["started_at"] - SLACK:
            yield f"operation {id}: attempt {attempt} did something before its start"
        over = row["finished_at"]
        if over and lines[-1]["at"] > over + SLACK and not history.was_cut_off(key):
            yield f"operation {id}: attempt {attempt} did something after its end"


def one_operation_of_an_action_runs_at_a_time(history: History) -> Iterator[str]:
    runs: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for key, lines in history.lines.items():
        row = history.operations.get(key[0])
        if row is None or key not in history.attempts or history.was_cut_off(key):
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
        key = (line["operation"], line["step"])
        # A step that failed or stopped by itself came to an end: a retry may begin it anew.
        if line["what"] == "start" and not line["repeatable"] and last.get(key) in {"start", "end"}:
            yield f"operation {key[0]}: step {key[1]}, not repeatable, began twice"
        last[key] = line["what"]


def what_succeeded_is_not_repeated(history: History) -> Iterator[str]:
    passed: set[tuple[str, str]] = set()
    for (id, attempt), lines in sorted(history.lines.items()):
        for line in lines:
            if line["what"] == "start" and (id, line["step"]) in passed:
                yield f"operation {id}: attempt {attempt} began step {line['step']} after its end"
        # A next step begins only once the end of the one before it is recorded.
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
            name for name, what in history.document(row)["operations"].items() if is_true(what)
        }
        ended = {
            line["step"]
            for attempt in attempts
            for line in history.lines[id, attempt["attempt"]]
            if line["what"] == "end"
        }
        if row["state"] == "success" and not wanted <= ended:
            yield f"operation {id}: success without an end of {sorted(wanted - ended)}"


RULES: tuple[Callable[[History], Iterator[str]], ...] = (
    revisions_follow_each_other,
    every_occurrence_has_one_outcome,
    operations_lie_on_occurrences,
    ids_are_as_documented,
    every_operation_ended,
    attempts_are_consecutive,
    an_attempt_belongs_to_one_process,
    no_side_effect_without_a_running_attempt,
    one_operation_of_an_action_runs_at_a_time,
    what_must_not_repeat_began_once,
    what_succeeded_is_not_repeated,
    success_means_that_all_steps_ended,
)


def violations(facts: Facts) -> list[str]:
    """Return every violation of every rule, each named by its rule."""
    history = History(facts)
    return [f"{rule.__name__}: {told}" for rule in RULES for told in rule(history)]
