"""A change of an action loses no due minute and runs none of the past."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from minutebook.steps import Steps, StepSpec
from models.errors import InvalidAction, NotFound, Refused
from models.store.actions import cursors, find
from models.store.scope import WHOLE_INSTALLATION
from models.tables import revisions
from scheduler.changes import Change, Done, deletion, editing
from scheduler.changes.change import apply_all, create_all
from scheduler.on_demand import manual
from tests.factories import (
    STEPS,
    author,
    cursor_of,
    make_action,
    make_document,
    rows_of,
    set_back,
    spans_of,
    yearly,
)
from tests.integration.statements.plans import Statements
from tests.servers import Broker
from tests.statements import executed
from tests.ticks import MINUTE, run_tick
from tests.transactions import act, clock_of, fetched
from tests.virtual_clock import VirtualClock

StoreAll = Callable[..., list[Change]]


def test_an_edit_decides_the_old_rule_first(engine: sa.Engine, broker: Broker) -> None:
    action = make_action(engine)
    before = clock_of(engine)
    set_back(engine, action.uid, before - 2 * MINUTE)

    changed = apply_all(
        engine, [make_document(when={"cron_rule": "0 0 1 1 *", "timezone": "UTC"})], author()
    )[0]

    rows = rows_of(engine, action)
    assert (changed.change, changed.revision) == (Done.CHANGED, 2)
    assert [row["revision"] for row in rows] == [1] * len(rows)
    assert [row["state"] for row in rows][-1] == "queued"
    assert before - MINUTE < rows[-1]["occurrence_at"] <= clock_of(engine)
    assert len(broker.messages("quick")) == 1
    assert cursor_of(engine, action)["watermark"] >= before


def test_a_change_behind_what_is_decided_gives_none_a_second_outcome(engine: sa.Engine) -> None:
    now = clock_of(engine).replace(second=0, microsecond=0)
    action = make_action(engine, since=now)
    run_tick(engine, now + 60 * MINUTE)

    apply_all(engine, [make_document(policy={"overlap": "queue"})], author())
    run_tick(engine, now + 120 * MINUTE)

    spans = spans_of(engine)
    assert len(rows_of(engine, action)) + sum(count for _, count in spans) == 120
    # What lay ahead of the clock was set back, and the new revision decided it.
    assert [span["revision"] for span, _ in spans] == [2]


def test_a_new_rule_never_runs_the_past(engine: sa.Engine) -> None:
    now = clock_of(engine)
    action = make_action(engine, when=yearly(now, days=180), since=now - timedelta(minutes=4))

    apply_all(engine, [make_document()], author())
    edited_at = cursor_of(engine, action)["watermark"]
    run_tick(engine, edited_at + timedelta(milliseconds=1))

    assert rows_of(engine, action) == []


def test_pausing_decides_what_was_due_and_resuming_catches_nothing_up(engine: sa.Engine) -> None:
    action = make_action(engine)
    set_back(engine, action.uid, clock_of(engine) - 2 * MINUTE)

    editing.set_active(engine, action.uid, active=False, author=author())
    recorded = len(rows_of(engine, action))
    run_tick(engine, clock_of(engine) + timedelta(hours=1))
    paused = len(rows_of(engine, action))

    assert recorded >= 1
    assert paused == recorded
    assert cursor_of(engine, action)["next_occurrence_at"] is None

    editing.set_active(engine, action.uid, active=True, author=author())
    run_tick(engine, clock_of(engine))
    assert len(rows_of(engine, action)) == recorded


def test_all_or_none_are_stored(engine: sa.Engine) -> None:
    documents = [make_document(name="a"), make_document(name="b", when={}), {"name": "c"}]

    with pytest.raises(InvalidAction) as refused:
        create_all(engine, documents, author())

    assert {problem.path.split("]")[0] for problem in refused.value.problems} == {"[1", "[2"}
    assert fetched(engine, sa.select(sa.func.count()).select_from(revisions)).scalar() == 0


@pytest.mark.parametrize("store", [create_all, apply_all])
def test_an_interval_stored_a_second_later_is_unchanged(engine: sa.Engine, store: StoreAll) -> None:
    document = make_document(when={"every": "PT15M"})
    shown = VirtualClock(engine, datetime(2027, 1, 4, tzinfo=UTC))
    steps = WhileValidating(lambda: shown.set(shown.now + timedelta(seconds=1)))

    store(engine, [document], author(steps))

    assert apply_all(engine, [document], author())[0].change is Done.UNCHANGED


def test_a_manual_run_is_sent_at_once_and_refused_while_active(
    engine: sa.Engine, broker: Broker
) -> None:
    action = make_action(engine)

    operation, sent = manual.run_now(engine, action.uid, "ann")

    assert sent.count == 1
    assert broker.messages("quick") == [(str(operation), 1)]
    row = rows_of(engine, action)[0]
    assert (row["triggerer"], row["state"]) == ("Manual run by ann", "queued")
    with pytest.raises(Refused, match="already active"):
        manual.run_now(engine, action.uid, "ann")
    assert len(rows_of(engine, action)) == 1


def test_one_name_twice_is_refused(engine: sa.Engine) -> None:
    with pytest.raises(InvalidAction, match=r"is already in document \[0\]"):
        apply_all(engine, [make_document(), make_document()], author())


def test_manual_runs_of_one_second_are_operations_of_their_own(engine: sa.Engine) -> None:
    action = make_action(engine, policy={"overlap": "allow"})

    ids = {manual.run_now(engine, action.uid, "ann")[0] for _ in range(3)}

    assert len(ids) == 3


def test_a_deleted_action_cannot_be_changed(engine: sa.Engine) -> None:
    action = make_action(engine)
    deletion.delete(engine, action.uid, author())

    with pytest.raises(NotFound, match="was deleted"):
        editing.set_active(engine, action.uid, active=True, author=author())
    with pytest.raises(Refused, match="was deleted"):
        manual.run_now(engine, action.uid, "ann")


class WhileValidating(Steps):
    """Known steps; the first lookup triggers a callback."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._acts = [act]

    def __getitem__(self, name: str) -> StepSpec:
        while self._acts:
            self._acts.pop()()
        return STEPS[name]

    def __iter__(self) -> Iterator[str]:
        return iter(STEPS)

    def __len__(self) -> int:
        return len(STEPS)


def test_a_document_that_was_the_same_wins_over_a_change_in_between(engine: sa.Engine) -> None:
    ours = [make_document(name=name) for name in ("first", "second")]
    apply_all(engine, ours, author())
    theirs = [one | {"description": "theirs"} for one in ours]
    steps = WhileValidating(lambda: apply_all(engine, theirs, author()))
    now_ours = [ours[0], ours[1] | {"description": "ours"}]

    changed = apply_all(engine, now_ours, author(steps))

    assert [(one.change, one.revision) for one in changed] == [(Done.CHANGED, 3)] * 2
    stored = [act(engine, find, 1, one["name"], WHOLE_INSTALLATION) for one in ours]
    assert ["theirs" in row["document"] for row in stored] == [False, False]


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_an_action_that_stays_is_not_waited_for(engine: sa.Engine) -> None:
    """A tick that decides it, or a hand, may keep it locked; and no tick waits for this change."""
    action = make_action(engine)
    with engine.begin() as connection:
        cursors.lock(connection, action.uid)

        same = apply_all(engine, [make_document()], author())[0]

    assert (same.uid, same.change) == (action.uid, Done.UNCHANGED)


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_names_are_found_by_no_partial_index_before_the_first_analysis(engine: sa.Engine) -> None:
    """PostgreSQL takes an index with a condition for empty until then, and would read it whole."""
    documents = [make_document(name=f"number {number}") for number in range(1_000)]
    create_all(engine, documents, author())
    asked = Statements(engine, is_repeated=False)

    with asked.captured():
        apply_all(engine, documents, author())
        apply_all(engine, [one | {"description": "new"} for one in documents], author())

    by_name = {text: reads for text, reads in asked.reads().items() if "name = " in text}
    used = {one.index for reads in by_name.values() for one in reads if one.table == "actions"}
    # All names of a small table are read at once; one after the other, by an index that has all.
    assert used <= {None, "actions_by_name"}


@pytest.mark.parametrize("store", [create_all, apply_all])
def test_a_due_date_that_came_while_documents_were_validated_is_refused(
    engine: sa.Engine, store: StoreAll
) -> None:
    shown = VirtualClock(engine, datetime(2027, 1, 4, tzinfo=UTC))
    document = make_document(when={"due_date": "2027-01-04T00:00:02Z"})
    steps = WhileValidating(lambda: shown.set(shown.now + timedelta(seconds=3)))

    with pytest.raises(InvalidAction, match="due_date"):
        store(engine, [document], author(steps))


def test_many_changes_are_stored_by_as_many_statements_as_few(engine: sa.Engine) -> None:
    counts = []
    for minute, count in ((0, 40), (1, 2), (2, 40)):
        when = {"cron_rule": f"{minute} 4 1 1 *", "timezone": "UTC"}
        documents = [make_document(name=f"number {number}", when=when) for number in range(count)]
        with executed(engine) as statements:
            changed = apply_all(engine, documents, author())
        counts.append(len(statements))

    assert {one.change for one in changed} == {Done.CHANGED}
    assert counts[1] == counts[2]


def test_what_is_no_longer_allowed_is_renamed_switched_off_and_deleted(engine: sa.Engine) -> None:
    document = make_document(operations={"command": {"run": ["/srv/backup"]}})
    uid = create_all(engine, [document], author(commands=("*",)))[0].uid

    renamed = editing.rename(engine, uid, "other", author())
    paused = editing.set_active(engine, uid, active=False, author=author())
    with pytest.raises(InvalidAction):
        editing.replace_document(engine, uid, document, author())

    assert (renamed.name, renamed.revision, paused.switched) == ("other", 2, "paused")
    assert deletion.delete(engine, uid, author()).change is Done.DELETED


def test_two_spellings_of_an_accent_name_one_action(engine: sa.Engine) -> None:
    composed, decomposed = "caf\u00e9", "cafe\u0301"

    (made,) = apply_all(engine, [make_document(name=decomposed)], author())
    (same,) = apply_all(engine, [make_document(name=composed)], author())
    (again,) = apply_all(engine, [make_document(name=decomposed)], author())

    assert (made.name, same.change, again.change) == (composed, "unchanged", "unchanged")
    assert act(engine, find, 1, decomposed, WHOLE_INSTALLATION)["uid"] == made.uid
    with pytest.raises(Refused):
        create_all(engine, [make_document(name=decomposed)], author())


@pytest.mark.parametrize("name", ["b\udcfcb", "a\0b"], ids=["latin-1", "nul"])
def test_an_author_is_stored_as_any_text(engine: sa.Engine, name: str) -> None:
    who = replace(author(), name=name)
    apply_all(engine, [make_document()], who)
    apply_all(engine, [make_document(policy={"overlap": "queue"})], who)

    first, second = fetched(engine, sa.select(revisions.c.author)).scalars()
    assert first == second


NEXT = [
    pytest.param({"cron_rule": "0 4 * * *", "timezone": "UTC"}, {}, id="cron"),
    pytest.param({"cron_rule": "0 4 * * *", "jitter": "PT1H"}, {}, id="jitter"),
    pytest.param({"every": "PT1H"}, {}, id="interval"),
    pytest.param({"every": "PT1H", "from": "end"}, {}, id="from the end"),
    pytest.param({"due_date": "2199-01-01T00:00:00Z"}, {}, id="due date"),
    pytest.param({"on": "instance.user.created"}, {}, id="event"),
    pytest.param({"cron_rule": "* * * * *"}, {"active": False}, id="paused"),
]


@pytest.mark.parametrize(("when", "more"), NEXT)
def test_what_is_stored_has_the_next_occurrence_that_a_tick_computes(
    engine: sa.Engine, when: dict[str, str], more: dict[str, Any]
) -> None:
    """No tick decides it before; a tick that does so at once computes the same."""
    action = make_action(engine, when=when, **more)
    stored = cursor_of(engine, action)
    before = run_tick(engine, stored["watermark"])
    apply_all(engine, [make_document(when=when, description="changed", **more)], author())
    edited = cursor_of(engine, action)
    act(engine, cursors.reschedule)
    after = run_tick(engine, edited["watermark"])

    is_due = "on" not in when and not more
    assert before.decided == 0
    assert (edited["next_occurrence_at"] is not None) == (after.decided == 1) == is_due
    assert cursor_of(engine, action)["next_occurrence_at"] == edited["next_occurrence_at"]
    if "from" not in when:
        assert stored["next_occurrence_at"] == edited["next_occurrence_at"]
