"""A new tz release has every action decided anew; an older one decides nothing anywhere."""

from collections.abc import Callable
from datetime import timedelta

import pytest
import sqlalchemy as sa

from models.store import key_values
from models.store.key_values import KERNEL, TZ_RELEASE
from models.tables import action_cursor, backfills, missed_spans, operations
from scheduler import tz_release as releases
from scheduler.changes import Change, change, deletion, editing
from scheduler.on_demand import backfill
from scheduler.on_demand.backfill_range import BackfillRequest, Mode
from scheduler.tz_release import OtherRelease, adopt_release
from tasks.backfill import process
from tests.factories import author, make_action, make_document, make_many
from tests.integration.scheduler.test_tick import SEVEN
from tests.ticks import MINUTE, run_tick
from tests.transactions import act, clock_of, fetched


def filed(engine: sa.Engine) -> int:
    """Return how many actions have a computed next occurrence."""
    is_computed = action_cursor.c.next_occurrence_at > action_cursor.c.watermark
    query = sa.select(sa.func.count()).where(is_computed)
    return int(fetched(engine, query).scalar_one())


def test_a_newer_release_files_every_action_anew(engine: sa.Engine) -> None:
    make_many(engine, 10)
    run_tick(engine, SEVEN)
    act(engine, key_values.set_value, KERNEL, "1")
    act(engine, key_values.set_value, TZ_RELEASE, "2020a")
    before = filed(engine)

    changed = adopt_release(engine)

    assert (before, changed, filed(engine)) == (10, True, 0)
    assert adopt_release(engine) is False
    # What cannot be read counts as an older one.
    act(engine, key_values.set_value, KERNEL, "²")
    assert [adopt_release(engine) for _ in range(2)] == [True, False]


@pytest.mark.parametrize(("key", "value"), [(KERNEL, "99"), (TZ_RELEASE, "2999z")])
def test_an_older_daemon_is_refused(engine: sa.Engine, key: str, value: str) -> None:
    adopt_release(engine)
    act(engine, key_values.set_value, key, value)

    with pytest.raises(OtherRelease, match="upgrade this process"):
        adopt_release(engine)


def release(patch: pytest.MonkeyPatch, name: str) -> None:
    patch.setattr(releases, "tz_release", lambda: name)


def outcomes(engine: sa.Engine) -> int:
    """Return how many occurrences are recorded, as operations or in missed spans."""
    rows = fetched(engine, sa.select(sa.func.count()).select_from(operations)).scalar_one()
    missed = fetched(engine, sa.select(sa.func.sum(missed_spans.c.count))).scalar_one()
    return int(rows) + int(missed or 0)


def test_what_a_newer_release_scheduled_is_left_to_it(
    engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The older daemon would find the minute due, decide that it is none, and pass over it."""
    release(monkeypatch, "2026a")
    adopt_release(engine)
    make_many(engine, 60)
    run_tick(engine, SEVEN)
    first = outcomes(engine)
    release(monkeypatch, "2026b")
    adopt_release(engine)
    run_tick(engine, SEVEN + MINUTE)
    before = outcomes(engine)
    release(monkeypatch, "2026a")

    stepped_back = [run_tick(engine, SEVEN + number * MINUTE) for number in (2, 3)]
    during = outcomes(engine)
    release(monkeypatch, "2026b")
    run_tick(engine, SEVEN + 4 * MINUTE)

    assert {one.decided for one in stepped_back} == {0}
    assert "this process has kernel 1, tz 2026a" in str(stepped_back[0].older_release)
    assert (before - first, during - first, outcomes(engine) - first) == (60, 60, 240)


def test_a_daemon_that_is_overtaken_in_the_middle_of_a_tick_decides_nothing_more(
    engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    release(monkeypatch, "2026a")
    adopt_release(engine)
    make_many(engine, 3)
    looked = releases.why_not_decide

    def overtaken(engine: sa.Engine, kernel: str | None, tz: str | None) -> str | None:
        found = looked(engine, kernel, tz)
        release(monkeypatch, "2026b")
        adopt_release(engine)
        release(monkeypatch, "2026a")
        return found

    monkeypatch.setattr("scheduler.tick.why_not_decide", overtaken)
    report = run_tick(engine, SEVEN)

    assert (report.decided, outcomes(engine)) == (0, 0)
    assert report.older_release is not None


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_a_newer_daemon_waits_for_a_decision_by_the_older_release(engine: sa.Engine) -> None:
    adopt_release(engine)
    with engine.begin() as deciding:
        releases.hold_release(deciding)

        with engine.connect() as adopting:
            adopting.execute(sa.text("SET lock_timeout = '50ms'"))
            with pytest.raises(sa.exc.OperationalError):
                key_values.hold_value(adopting, TZ_RELEASE)


def start_backfill(engine: sa.Engine, one: Change) -> None:
    now = clock_of(engine).replace(second=0, microsecond=0)
    wanted = BackfillRequest(one.uid, now - 3 * MINUTE, now - MINUTE, Mode.MISSING)
    backfill.start(engine, wanted, "me", timedelta(days=90))


Act = Callable[[sa.Engine, Change], object]
NEW = make_document(name="one", description="new")
DECIDING: dict[str, Act] = {
    "apply": lambda engine, _: change.apply_all(engine, [NEW], author()),
    "edit": lambda engine, one: editing.replace_document(engine, one.uid, NEW, author()),
    "rename": lambda engine, one: editing.rename(engine, one.uid, "other", author()),
    "pause": lambda engine, one: editing.set_active(engine, one.uid, active=False, author=author()),
    "delete": lambda engine, one: deletion.delete(engine, one.uid, author()),
    "backfill": start_backfill,
}


@pytest.mark.parametrize("act", DECIDING.values(), ids=DECIDING)
@pytest.mark.parametrize(
    ("own", "older"), [("2000a", "this process"), ("2999z", "the daemon")], ids=["older", "newer"]
)
def test_what_decides_is_refused_with_another_release_than_the_daemons(
    engine: sa.Engine, monkeypatch: pytest.MonkeyPatch, act: Act, own: str, older: str
) -> None:
    one = make_action(engine, name="one")
    adopt_release(engine)
    release(monkeypatch, own)

    with pytest.raises(OtherRelease, match=f"this process has kernel 1, tz {own}.*upgrade {older}"):
        act(engine, one)


def test_a_worker_of_another_release_leaves_a_backfill_to_others(
    engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = make_action(engine, name="one")
    adopt_release(engine)
    start_backfill(engine, one)
    id = fetched(engine, sa.select(backfills.c.id)).scalar_one()
    release(monkeypatch, "2000a")

    said = process(engine, id)

    assert said.startswith("this process has kernel 1, tz 2000a")
    row = fetched(engine, sa.select(backfills)).one()
    assert (row.state, row.recorded) == ("active", 0)
