"""Run every active action on request."""

import sqlalchemy as sa

from models.tables import actions as actions_table
from scheduler.on_demand import manual
from tests.factories import DEFAULT_APP, make_action, make_app, row_of, rows_of, spoil
from tests.servers import Broker
from tests.transactions import act


def test_each_is_recorded_as_a_manual_run_and_all_are_sent(
    engine: sa.Engine, broker: Broker
) -> None:
    made = [make_action(engine, name=name) for name in ("one", "two")]

    asked, sent = manual.run_all(engine, "ann", DEFAULT_APP.id)

    assert sent.count == 2
    assert [one.uid for one in asked] == [one.uid for one in made]
    for one in asked:
        assert one.operation_id is not None
        row = row_of(engine, one.operation_id)
        assert (row["triggerer"], row["state"]) == ("Manual run by ann", "queued")
    assert len(broker.messages("quick")) == 2


def test_those_of_other_small_apps_are_run_only_with_all_of_them(engine: sa.Engine) -> None:
    other = make_app(engine, "other")
    make_action(engine, name="theirs", app=other)
    make_action(engine, name="ours")

    of_one, _ = manual.run_all(engine, "ann", other.id)
    of_all, _ = manual.run_all(engine, "ann")

    assert [one.name for one in of_one] == ["theirs"]
    refused = {one.name: one.refused for one in of_all}
    assert refused["ours"] == ""
    assert "already active" in refused["theirs"]


def test_what_cannot_run_is_told_and_stops_no_other(engine: sa.Engine) -> None:
    broken = make_action(engine, name="broken")
    whole = make_action(engine, name="whole")
    act(engine, spoil, actions_table.c.uid == broken.uid, plan="{}")

    asked, sent = manual.run_all(engine, "ann", DEFAULT_APP.id)

    assert [bool(one.refused) for one in asked] == [True, False]
    assert "the stored plan cannot be read" in asked[0].refused
    assert (sent.count, len(rows_of(engine, broken)), len(rows_of(engine, whole))) == (1, 0, 1)
