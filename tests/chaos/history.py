"""The facts by subject, and the expected occurrences.

An occurrence is *certain* if only one revision can have had it due: it must have one outcome. It is
*doubtful* if the action changed in a stretch of time that was decided again after the clock went
back: then it has at most one outcome. The storm's journal says how far the clock was moved, and
what was decided ahead of it.
"""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

from tests.chaos.facts import Facts, Row
from tests.chaos.occurrences import occurrences

MANUAL = "Manual run"
OURS = ("execute_scheduled_action", "job")
EVER_SINCE = datetime.min.replace(tzinfo=UTC)
# Ticks wait for a clock that goes back by less.
CLOCK_WAS_WRONG = timedelta(minutes=5)
# Around a jump nobody knows to the moment which clock a statement saw.
ABOUT = timedelta(seconds=1)
Key = tuple[str, int]


@dataclass(frozen=True, slots=True, order=True)
class Stretch:
    """The instants in (after, until]."""

    after: datetime
    until: datetime

    def has(self, at: datetime) -> bool:
        return self.after < at <= self.until


def repeated(journal: Sequence[Row]) -> list[Stretch]:
    """Return the stretches that may have been decided twice, ascending and apart."""
    clocks = sorted(_clocks(journal), key=lambda row: row["since"])
    found = [
        Stretch(row["since"] - ABOUT, row["at"] + ABOUT)
        for row in journal
        if row["what"] == "ahead"
    ]
    for number, later in enumerate(clocks):
        begins = later["since"] + later["shift"] - ABOUT
        for earlier in clocks[:number]:
            ended = (earlier["until"] or later["since"]) + earlier["shift"] + ABOUT
            if begins < ended - 2 * ABOUT:
                found.append(Stretch(begins, ended))
    return merged(found)


def merged(stretches: Iterable[Stretch]) -> list[Stretch]:
    """Return the same instants as stretches that are apart, ascending."""
    found: list[Stretch] = []
    for one in sorted(stretches):
        if found and one.after <= found[-1].until:
            found[-1] = Stretch(found[-1].after, max(found[-1].until, one.until))
        else:
            found.append(one)
    return found


def true_instants(journal: Sequence[Row], shown: datetime) -> list[datetime]:
    """Return when it may have been that the clock showed `shown`, by a clock never set."""
    clocks = _clocks(journal)
    if not clocks:
        return [shown]
    return [
        shown - row["shift"]
        for row in clocks
        if row["since"] - ABOUT <= shown - row["shift"]
        and (row["until"] is None or shown - row["shift"] <= row["until"] + ABOUT)
    ]


def _clocks(journal: Sequence[Row]) -> list[Row]:
    return [row for row in journal if row["what"] == "clock"]


class History:
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
    def repeated(self) -> list[Stretch]:
        """The stretches of time that the clock showed twice."""
        return repeated(self.facts.journal)

    @cached_property
    def undone(self) -> list[Stretch]:
        """Those so long that a tick may have noticed, and undone the decisions in them."""
        return [one for one in self.repeated if one.until - one.after > CLOCK_WAS_WRONG]

    @cached_property
    def revisions(self) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = defaultdict(list)
        for row in sorted(self.facts.tables["revisions"], key=lambda row: row["number"]):
            found[row["action_uid"]].append(row)
        return found

    @cached_property
    def retried(self) -> set[str]:
        """The ids of operations that a person asked to run again, or to fill in."""
        asked = {row["operation"] for row in self.facts.journal if row["what"] == "retry"}
        return asked | {id for id, row in self.operations.items() if row["backfill_id"]}

    @cached_property
    def was_paused(self) -> bool:
        """Whether everything was paused for a while."""
        return any(row["what"] == "pause" for row in self.facts.journal)

    @cached_property
    def scheduled(self) -> list[Row]:
        return [row for row in self.operations.values() if not self.is_manual(row)]

    def is_manual(self, operation: Row) -> bool:
        """Return whether a person asked for an operation first, whoever ran it again since."""
        its_own = self.id_of(operation["action_uid"], operation["occurrence_at"])
        was_retried = operation["id"] in self.retried and operation["id"] != its_own
        return was_retried or is_manual(operation)

    @cached_property
    def doubtful(self) -> dict[str, list[Stretch]]:
        """The stretches of each action in which more than one revision may apply."""
        return {uid: merged(self._doubts_of(uid)) for uid in self.actions}

    @cached_property
    def expected(self) -> dict[str, dict[datetime, int]]:
        """The certain occurrences of each action until the last tick, with their revisions."""
        watermarks = {
            row["action_uid"]: row["watermark"] for row in self.facts.tables["action_cursor"]
        }
        ticked = max((row["now"] for row in self.facts.tables["ticks"]), default=None)
        return {
            uid: self._expected_of(uid, max(filter(None, (watermarks[uid], ticked))))
            for uid in self.actions
        }

    def is_repeated(self, at: datetime) -> bool:
        """Return whether an instant was shown twice, or decided ahead of the clock."""
        return any(one.has(at) for one in self.repeated)

    def may_be_undone(self, at: datetime) -> bool:
        """Return whether an instant may have been decided again."""
        return any(one.has(at) for one in self.undone)

    def is_doubtful(self, uid: str, at: datetime) -> bool:
        return any(one.has(at) for one in self.doubtful[uid])

    def _doubts_of(self, uid: str) -> list[Stretch]:
        takes_effect = [row["effective_from"] for row in self.revisions[uid]]
        gone = self.actions[uid]["deleted_at"]
        changes = [*takes_effect, *filter(None, [gone])]
        # Decisions ahead of the clock exist, even of an action deleted before.
        found = [
            Stretch(gone, one.until + ABOUT) for one in self.repeated if gone and one.has(gone)
        ]
        for stretch in self.repeated:
            if any(stretch.after - ABOUT <= at <= stretch.until + ABOUT for at in changes):
                # A change sets its own action back to the clock, however small the step.
                found.append(Stretch(stretch.after - ABOUT, stretch.until + ABOUT))
                if stretch in self.undone:
                    # The next change may decide again what was missed since the last one.
                    earlier = [at for at in takes_effect if at < stretch.after]
                    found.append(Stretch(max(earlier, default=EVER_SINCE), stretch.until + ABOUT))
        return found

    def counts_from_end(self, uid: str) -> bool:
        """Return whether what is due follows from what ran, in any revision of an action."""
        rules = (row["document"]["when"] for row in self.revisions[uid])
        return any(isinstance(rule, dict) and rule.get("from") == "end" for rule in rules)

    def _expected_of(self, uid: str, until: datetime) -> dict[datetime, int]:
        revisions = self.revisions[uid]
        if self.counts_from_end(uid):
            return {}
        until = self.actions[uid]["deleted_at"] or until
        found: dict[datetime, int] = {}
        for number, row in enumerate(revisions):
            # If the clock goes back, a later revision may take effect earlier.
            end = min([until, *(later["effective_from"] for later in revisions[number + 1 :])])
            for at in occurrences(row["document"], uid, row["effective_from"], end):
                if not self.is_doubtful(uid, at):
                    found[at] = row["number"]
        return found

    def document_of(self, uid: str, revision: int) -> Row:
        found: Row = self.revisions[uid][revision - 1]["document"]
        return found

    def document(self, operation: Row) -> Row:
        return self.document_of(operation["action_uid"], operation["revision"])

    def policy(self, operation: Row) -> Row:
        """Return the policy of an operation, with the defaults that the rules need."""
        policy = self.document(operation).get("policy") or {}
        return {"overlap": "skip", "catch_up": "latest", **policy}

    def id_of(self, uid: str, at: datetime) -> str:
        """Return the id of the operation of an action's occurrence, recorded or not."""
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{uid} | {at:%Y-%m-%dT%H:%M:%SZ}"))

    def attempts_of(self, id: str) -> list[Row]:
        found = [row for (operation, _), row in self.attempts.items() if operation == id]
        return sorted(found, key=lambda row: row["attempt"])

    def was_cut_off(self, key: Key) -> bool:
        """Return whether an attempt did not end by its own step."""
        attempt = self.attempts[key]
        error = attempt["error"] or ""
        lines = self.lines[key]
        return (
            attempt["state"] not in {"success", "partial", "failed"}
            or error.startswith(("lost", "time limit", "the worker stopped"))
            or not lines
            or lines[-1]["what"] == "start"
        )


def is_of_application(operation: Row) -> bool:
    return not operation["task"].startswith(OURS)


def is_manual(operation: Row) -> bool:
    """Return whether a manual request, not a schedule, caused an operation."""
    return bool(operation["triggerer"].startswith(MANUAL))
