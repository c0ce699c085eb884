"""The facts, sorted by what they are about, and which occurrences there have to be.

An occurrence is *certain* when one revision alone can have had it due: it must have one outcome.
It is *doubtful* where the clock went back so far that time was decided anew and the action was
changed in it, and while its document was broken: then it may have one, and no more.
"""

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from functools import cached_property

from tests.chaos.facts import Facts, Row
from tests.chaos.lived import ABOUT, Stretch, merged, repeated
from tests.chaos.occurrences import occurrences

MANUAL = "Manual run"
FOR_EVER = datetime.max.replace(tzinfo=UTC)
EVER_SINCE = datetime.min.replace(tzinfo=UTC)
# A clock that goes back by less is waited for.
CLOCK_WAS_WRONG = timedelta(minutes=5)
Key = tuple[str, int]


class History:
    """One installation's past."""

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
        """Those so long that a tick may have noticed and undone what was decided in them."""
        return [one for one in self.repeated if one.until - one.after > CLOCK_WAS_WRONG]

    @cached_property
    def revisions(self) -> dict[str, list[Row]]:
        """The revisions of each action, oldest first."""
        found: dict[str, list[Row]] = defaultdict(list)
        for row in sorted(self.facts.tables["revisions"], key=lambda row: row["number"]):
            found[row["action_uid"]].append(row)
        return found

    @cached_property
    def scheduled(self) -> list[Row]:
        """The operations that a schedule recorded."""
        return [row for row in self.operations.values() if not is_manual(row)]

    @cached_property
    def doubtful(self) -> dict[str, list[Stretch]]:
        """The stretches of each action in which no revision alone has what is due."""
        return {uid: merged(self._doubts_of(uid)) for uid in self.actions}

    @cached_property
    def expected(self) -> dict[str, dict[datetime, int]]:
        """The certain occurrences of each action until the last tick: which revision had it due."""
        watermarks = {
            row["action_uid"]: row["watermark"] for row in self.facts.tables["action_cursor"]
        }
        ticked = max((row["now"] for row in self.facts.tables["ticks"]), default=None)
        return {
            uid: self._expected_of(uid, max(filter(None, (watermarks[uid], ticked))))
            for uid in self.actions
        }

    def may_be_undone(self, at: datetime) -> bool:
        """Whether an instant may have been decided anew."""
        return any(one.has(at) for one in self.undone)

    def is_doubtful(self, uid: str, at: datetime) -> bool:
        """Whether an instant is one of which nobody can say what an action had due."""
        return any(one.has(at) for one in self.doubtful[uid])

    def _doubts_of(self, uid: str) -> list[Stretch]:
        takes_effect = [row["effective_from"] for row in self.revisions[uid]]
        broken = [
            row for row in self.facts.journal if row["what"] == "broken" and row["action"] == uid
        ]
        gone = self.actions[uid]["deleted_at"]
        changes = [*takes_effect, *(row["at"] for row in broken), *filter(None, [gone])]
        # What was decided ahead of the clock is there, also of an action deleted before.
        found = [
            Stretch(gone, one.until + ABOUT) for one in self.repeated if gone and one.has(gone)
        ]
        for stretch in self.undone:
            if any(stretch.after - ABOUT <= at <= stretch.until + ABOUT for at in changes):
                # What was missed since the last change may be decided anew by the next one.
                before = max((at for at in takes_effect if at < stretch.after), default=EVER_SINCE)
                found.append(Stretch(before, stretch.until + ABOUT))
        for row in broken:
            mended = takes_effect[row["revision"] :][:1]
            found.append(Stretch(row["at"], max(row["at"], *mended) if mended else FOR_EVER))
        return found

    def _expected_of(self, uid: str, until: datetime) -> dict[datetime, int]:
        revisions = self.revisions[uid]
        until = self.actions[uid]["deleted_at"] or until
        found: dict[datetime, int] = {}
        for number, row in enumerate(revisions):
            # Under a clock that goes back a later revision may take effect earlier.
            end = min([until, *(later["effective_from"] for later in revisions[number + 1 :])])
            for at in occurrences(row["document"], uid, row["effective_from"], end):
                if not self.is_doubtful(uid, at):
                    found[at] = row["number"]
        return found

    def document_of(self, uid: str, revision: int) -> Row:
        """Return the document of an action's revision."""
        found: Row = self.revisions[uid][revision - 1]["document"]
        return found

    def document(self, operation: Row) -> Row:
        """Return the document that an operation runs."""
        return self.document_of(operation["action_uid"], operation["revision"])

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


def is_manual(operation: Row) -> bool:
    """Whether an operation was asked for by somebody, not by a schedule."""
    return bool(operation["triggerer"].startswith(MANUAL))
