from datetime import UTC, datetime, time

import pytest

from models.action.hooks import HookModel, HooksModel
from models.action.plan import Plan, hooks_of, read_plan
from models.notices import (
    Moment,
    NoticeKind,
    Target,
    backoff,
    moment_of,
    notice_id,
    quiet_until,
    shown_target,
)
from models.operation import OperationState
from tests.ticks import HOUR, MINUTE

ANN = Target("mail", "ann@example.com")
OPS = Target("mail", "ops@example.com")
NIGHT = (time(22), time(7))
EARLY = (time(22), time(2, 30))
NOON = (time(12), time(13, 30))


@pytest.mark.parametrize(
    ("state", "reason", "expected"),
    [
        (OperationState.SUCCESS, None, Moment.SUCCESS),
        (OperationState.FAILED, "time limit", Moment.FAILURE),
        (OperationState.PARTIAL, None, Moment.FAILURE),
        (OperationState.PARTIAL, "time box", None),
        (OperationState.CANCELLED, "cancelled", None),
    ],
)
def test_which_hooks_an_end_calls(
    state: OperationState, reason: str | None, expected: Moment | None
) -> None:
    assert moment_of(state, reason) == expected


def test_who_hears_of_what_each_once() -> None:
    ann, ops = HookModel(mail=ANN.to), HookModel(mail=OPS.to)
    first = HookModel(mail="bob@example.com", when="first")
    hooks = HooksModel(on_success=(ann,), on_failure=(ops, ann, ops, first))
    silent, own = (hooks.model_copy(update={"on_missed": one}) for one in ((), (ann,)))

    assert hooks.at(Moment.SUCCESS) == (ANN,)
    assert hooks.at(Moment.FAILURE) == hooks.of_findings == hooks.of_missed == (OPS, ANN)
    assert hooks.of_first_failures == (first.target,)
    assert (hooks.at(None), silent.of_missed, own.of_missed) == ((), (), (ANN,))


def test_the_id_of_a_notice_is_fixed() -> None:
    ended, began = NoticeKind.RUN_ENDED, NoticeKind.FINDING_BEGAN
    of = [("1", "1", ended, ANN), ("2", "1", ended, ANN), ("1", "2", ended, ANN)]
    of += [("1", "1", began, ANN), ("1", "1", ended, OPS)]

    assert notice_id(*of[0]) == notice_id("1", "1", ended, Target("mail", ANN.to))
    assert len({notice_id(*one) for one in of}) == len(of)


@pytest.mark.parametrize(
    ("at", "hours", "until"),
    [
        pytest.param("2027-01-04T20:59:59", NIGHT, None, id="before"),
        pytest.param("2027-01-04T21:00:00", NIGHT, "2027-01-05T06:00:00", id="from the start"),
        pytest.param("2027-01-05T03:00:00", NIGHT, "2027-01-05T06:00:00", id="after midnight"),
        pytest.param("2027-01-05T06:00:00", NIGHT, None, id="not at the end"),
        pytest.param("2027-01-04T11:30:00", NOON, "2027-01-04T12:30:00", id="within a day"),
        pytest.param("2027-01-04T12:30:00", None, None, id="none"),
        # The clocks go forward in this night: the end is an hour earlier in UTC.
        pytest.param("2027-03-27T22:00:00", NIGHT, "2027-03-28T05:00:00", id="forward"),
        pytest.param("2027-03-28T00:30:00", EARLY, "2027-03-28T01:00:00", id="end in a gap"),
        pytest.param("2027-10-31T00:15:00", EARLY, "2027-10-31T00:30:00", id="first time"),
        pytest.param("2027-10-31T01:15:00", EARLY, "2027-10-31T01:30:00", id="second time"),
    ],
)
def test_quiet_hours_end_on_the_clock_of_their_zone(
    at: str, hours: tuple[time, time] | None, until: str | None
) -> None:
    now = datetime.fromisoformat(at).replace(tzinfo=UTC)

    found = quiet_until(now, hours, "Europe/Paris")

    assert found == (until and datetime.fromisoformat(until).replace(tzinfo=UTC))


def test_quiet_hours_may_be_in_any_zone() -> None:
    now = datetime(2027, 1, 4, 23, tzinfo=UTC)

    assert quiet_until(now, NIGHT, "Factory") == datetime(2027, 1, 5, 7, tzinfo=UTC)


def test_pauses_between_attempts_grow_and_the_last_repeats() -> None:
    pauses = [backoff(tries) for tries in (1, 2, 7, 50)]

    assert pauses == [MINUTE, 5 * MINUTE, 4 * HOUR, 4 * HOUR]


def test_a_plan_without_the_key_and_a_broken_one_have_no_hooks() -> None:
    plan = Plan(active=True, rules=(), is_heavy=False, queue="quick")
    earlier = plan.to_json().replace(',"hooks":null', "")

    assert read_plan(earlier) == plan
    assert hooks_of(read_plan(earlier)) is None
    assert hooks_of(read_plan(plan.to_json())) is None
    assert hooks_of(read_plan('{"hooks":{}')) is None


def test_only_the_host_of_a_url_is_shown() -> None:
    target = Target("webhook", "https://key@hooks.example.com:8443/T0KEN?k=1")

    assert (shown_target(target), shown_target(ANN)) == ("https://hooks.example.com:8443", ANN.to)
