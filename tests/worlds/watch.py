"""Looks at each step's commit: what moved in the tables, and the laws that hold for one move."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from models.job import JOB
from models.store.key_values import CLOCK_SET_BACK
from tests.chaos.facts import instant_of

if TYPE_CHECKING:
    from tests.worlds.world import World

# Columns of an operation, each as it was and as it is.
SEEN = (
    "state",
    "attempt",
    "sendings",
    "losses",
    "failures",
    "not_before",
    "heartbeat_at",
    "cancel_requested_at",
)
ITS = ("id", "action_uid", "queue", "task", "worker", "reason")
COLUMNS = ("seq", "what", *ITS, "is_held", *(f"old_{name}" for name in SEEN), *SEEN)
# A pause of everything; worlds have no other.
IS_HELD = "EXISTS (SELECT 1 FROM pauses WHERE ended_at IS NULL)"
INTO = f"INSERT INTO world_moves ({', '.join(COLUMNS[1:])})"
MOVED = (
    f"{INTO} VALUES ('moved', {', '.join(f'NEW.{name}' for name in ITS)}, {IS_HELD},"
    f" {', '.join(f'OLD.{name}' for name in SEEN)}, {', '.join(f'NEW.{name}' for name in SEEN)});"
)
RESUMED = (
    "INSERT INTO world_moves (what, id) SELECT 'resumed', id FROM operations"
    " WHERE state IN ('pending', 'queued');"
)
DELETED = "INSERT INTO world_moves (what, action_uid) VALUES ('deleted', NEW.uid);"
SET_RIGHT = "INSERT INTO world_moves (what) VALUES ('set right');"
# Newer runs of an action that began before an older one's retry.
NEWER_BEGAN = (
    "SELECT new.id FROM operations AS one JOIN operations AS new"
    " ON new.action_uid = one.action_uid AND new.occurrence_at > one.occurrence_at"
    " WHERE one.cause = 'schedule' AND new.cause = 'schedule'"
    " AND one.overlap_key IS NOT NULL AND new.first_started_at IS NOT NULL"
    # One that was sent by a clock ahead stands before nothing.
    " AND NOT EXISTS (SELECT 1 FROM action_cursor AS its WHERE its.action_uid = new.action_uid"
    " AND its.watermark < new.occurrence_at)"
)
WAITS_FOR_NOTHING = (
    "state IN ('pending', 'queued') AND failures = 0"
    " AND send_started_at IS NULL AND waiting_for IS NULL"
)
# What no instant of lies ahead of a clock that was just set right, and of which rows.
AHEAD = (
    ("action_cursor", "watermark", "1 = 1"),
    ("action_cursor", "effective_from", "1 = 1"),
    ("revisions", "effective_from", "1 = 1"),
    ("operations", "recorded_at", "state IN ('pending', 'queued')"),
    ("operations", "occurrence_at", "state = 'missed'"),
    ("operations", "not_before", WAITS_FOR_NOTHING),
    ("missed_spans", "last_at", "1 = 1"),
    ("findings", "began_at", "1 = 1"),
)
TABLE = (
    "CREATE TABLE world_moves (seq {serial}, is_held boolean,"
    + ", ".join(f" {name} text" for name in COLUMNS if name not in {"seq", "is_held"})
    + ")"
)
TRIGGERS = {
    "operation_moves": ("UPDATE ON operations", "OLD.id IS NOT NULL", MOVED),
    "deletion_moves": (
        "UPDATE OF deleted_at ON actions",
        "NEW.deleted_at IS NOT NULL AND OLD.deleted_at IS NULL",
        DELETED,
    ),
    **{
        f"{verb.lower()}_of_clock": (
            f"{verb} ON installation",
            f"NEW.key = '{CLOCK_SET_BACK}'",
            SET_RIGHT,
        )
        for verb in ("INSERT", "UPDATE")
    },
    "pause_moves": ("UPDATE OF ended_at ON pauses", "NEW.ended_at IS NOT NULL", RESUMED),
}


def follow_moves(connection: sa.Connection) -> None:
    """Let a database write down each move."""
    is_sqlite = connection.dialect.name == "sqlite"
    serial = "INTEGER PRIMARY KEY AUTOINCREMENT" if is_sqlite else "bigserial PRIMARY KEY"
    connection.exec_driver_sql(TABLE.format(serial=serial))
    for name, (when, only, act) in TRIGGERS.items():
        if is_sqlite:
            connection.exec_driver_sql(
                f"CREATE TRIGGER {name} AFTER {when} WHEN {only} BEGIN {act} END"
            )
            continue
        connection.exec_driver_sql(
            f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN {act} RETURN NULL; END $$"
        )
        connection.exec_driver_sql(
            f"CREATE TRIGGER {name} AFTER {when} FOR EACH ROW WHEN ({only})"
            f" EXECUTE FUNCTION {name}()"
        )


@dataclass(frozen=True, slots=True)
class Move:
    """What one statement changed of an operation: columns as they were and as they are."""

    row: dict[str, Any]

    @property
    def key(self) -> tuple[str, int]:
        """The id and the attempt, as it is."""
        return self.row["id"], int(self.row["attempt"])

    def was(self, name: str) -> Any:
        return self.row[f"old_{name}"]

    def has_become(self, state: str) -> bool:
        return bool(self.row["state"] == state != self.row["old_state"])

    def is_counted(self, name: str) -> bool:
        """Return whether a count went up by one."""
        return int(self.row[name]) == int(self.was(name)) + 1


class Watch:
    """The moves of a world so far, and what was wrong with them."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.broken: list[str] = []
        self.claimed: set[tuple[str, int]] = set()
        # What waited when a pause ended.
        self.held: set[str] = set()
        self._seen = 0
        # When each running operation was last heard of, by the clock that is never set.
        self._heard_at: dict[str, datetime] = {}
        self._database = world.database
        self._clock_set_at = world.loom.begun_at

    def note_clock(self) -> None:
        """Remember that the database's clock was set: leases look older than they are."""
        self._clock_set_at = self.world.loom.now

    def forget(self) -> None:
        """Begin anew with a database that was restored."""
        self.claimed.clear()
        self._heard_at.clear()
        self.held.clear()
        ((last,),) = self._database.rows("SELECT max(seq) FROM world_moves")
        self._seen = last or 0

    def look(self) -> None:
        """Judge what moved since the last look."""
        if not self._database.has_changed():
            return
        query = f"SELECT {', '.join(COLUMNS)} FROM world_moves WHERE seq > {self._seen}"
        for values in self._database.rows(f"{query} ORDER BY seq"):
            row = dict(zip(COLUMNS, values, strict=True))
            self._seen = row["seq"]
            judges = {
                "moved": self._moved,
                "deleted": self._deleted,
                "resumed": self._resumed,
                "set right": self._set_right,
            }
            for problem in judges[row["what"]](row):
                self.broken.append(f"{problem} (by {self.world.loom.last})")

    def _deleted(self, row: dict[str, Any]) -> Iterator[str]:
        uid = row["action_uid"]
        left = self._database.rows(
            # What is being sent to the application may be there already.
            "SELECT id FROM operations WHERE state IN ('pending', 'queued')"
            f" AND send_started_at IS NULL AND action_uid = '{uid}'"
        )
        if left:
            yield f"a deletion leaves nothing: action {uid} was deleted, and {left[0][0]} waits"

    def _set_right(self, _row: dict[str, Any]) -> Iterator[str]:
        # A tick whose instant is given has another clock.
        if self.world.loom.last.startswith("ahead"):
            return
        # The step that set it right ends with its commit, and no time passes in it.
        now = self.world.now() + timedelta(seconds=1)
        for table, column, which in AHEAD:
            ((last,),) = self._database.rows(f"SELECT max({column}) FROM {table} WHERE {which}")
            if last and instant_of(last) > now:
                yield f"nothing lies ahead of a clock set right: {table}.{column} is {last}"

    def _resumed(self, row: dict[str, Any]) -> Iterator[str]:
        self.held.add(row["id"])
        return iter(())

    def _moved(self, row: dict[str, Any]) -> Iterator[str]:
        move = Move(row)
        if move.has_become("running"):
            yield from self._claims(move)
        elif move.was("state") == "running" != row["state"]:
            yield from self._leaves(move)
        is_put_back = move.was("state") == "queued" or str(row["reason"]).startswith("waits")
        if row["state"] == "pending" and is_put_back:
            # It is sent anew later.
            self.world.post.accepted.discard(move.key)
        yield from self._is_sent(move)
        if row["state"] == "running" and row["heartbeat_at"] != move.was("heartbeat_at"):
            self._heard_at[row["id"]] = self.world.loom.now

    def _claims(self, move: Move) -> Iterator[str]:
        if move.key in self.claimed:
            yield f"an attempt is claimed once: {move.key} was claimed again"
        self.claimed.add(move.key)
        if move.row["is_held"]:
            yield f"nothing starts in a pause: {move.key} started"
        is_retry = int(move.row["failures"]) > 0
        if is_retry and self._database.rows(f"{NEWER_BEGAN} AND one.id = '{move.row['id']}'"):
            yield f"no retry starts after a newer run: {move.key} started"

    def _leaves(self, move: Move) -> Iterator[str]:
        is_lost = move.row["reason"] == "lost"
        if is_lost and not move.is_counted("losses"):
            yield f"a loss is counted: {move.key} was lost {move.row['losses']} times"
        if is_lost:
            yield from self._is_dead(move)
        if move.was("cancel_requested_at") and move.row["state"] == "pending":
            yield f"a cancel takes effect: {move.key} was asked to end and begins again"

    def _is_dead(self, move: Move) -> Iterator[str]:
        heard_at = self._heard_at.get(move.row["id"])
        if heard_at is None or heard_at <= self._clock_set_at:
            return
        age_s = (self.world.loom.now - heard_at).total_seconds()
        if age_s < self.world.settings.worker.lease_s - 0.01:
            yield f"a lease lasts: {move.key} was taken back {age_s:.1f} s after a heartbeat"

    def _is_sent(self, move: Move) -> Iterator[str]:
        row = move.row
        if int(row["sendings"]) > int(move.was("sendings")) and row["task"] != JOB:
            key = (row["id"], int(move.was("attempt")))
            if key not in self.world.post.accepted:
                yield f"a mark follows its message: {key} is marked as sent, and was not"
        is_same = row["state"] == move.was("state") and row["attempt"] == move.was("attempt")
        is_later = row["not_before"] != move.was("not_before") and instant_of(
            row["not_before"]
        ) > self.world.now() + timedelta(seconds=10)
        if row["is_held"] and row["state"] == "pending" and is_same and is_later:
            yield f"nothing is reserved in a pause: {move.key}"
