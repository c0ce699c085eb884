from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from cron import CronSchedule, InvalidRule

SPAN = timedelta(days=2)
ZONES = (
    *("UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Pacific/Chatham"),
    *("Africa/Casablanca", "Antarctica/Troll", "Antarctica/Casey", "Pacific/Apia"),
    *("America/Havana", "America/St_Johns", "Africa/Monrovia", "Asia/Kathmandu"),
)
LIMITS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


def field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    span = st.tuples(number, number).map(lambda ends: f"{min(ends)}-{max(ends)}")
    item = st.one_of(
        st.just("*"),
        number.map(str),
        span,
        st.tuples(st.one_of(st.just("*"), span), st.integers(1, 70)).map(
            lambda p: f"{p[0]}/{p[1]}"
        ),
    )
    return st.lists(item, min_size=1, max_size=3).map(",".join)


def schedule_of(rule: str, zone: str) -> CronSchedule | None:
    try:
        return CronSchedule(rule, zone)
    except InvalidRule as error:
        assert error.field == "day of month"  # noqa: PT017 - it never fires
        return None


RULES = st.tuples(*(field(*limits) for limits in LIMITS)).map(" ".join)
SCHEDULES = (
    st.tuples(RULES, st.sampled_from(ZONES))
    .map(lambda pair: schedule_of(*pair))
    .filter(lambda schedule: schedule is not None)
)
INSTANTS = st.datetimes(
    datetime(1970, 1, 5),  # noqa: DTZ001
    datetime(2199, 12, 20),  # noqa: DTZ001
    timezones=st.just(UTC),
)
checked = settings(max_examples=40, deadline=None, derandomize=True, database=None)


@checked
@given(SCHEDULES, INSTANTS)
def test_nothing_lies_between_an_instant_and_its_neighbours(
    schedule: CronSchedule, now: datetime
) -> None:
    following, preceding = schedule.next(now), schedule.previous(now)

    if following is not None:
        assert following > now
        assert schedule.previous(following + timedelta(microseconds=1)) == following
        assert schedule.last(now, following) == following
        assert schedule.count(now, following) == 1
        before = schedule.previous(following)
        assert before is None or before <= now
    if preceding is not None:
        assert preceding < now
        assert schedule.next(preceding - timedelta(microseconds=1)) == preceding
        after = schedule.next(preceding)
        assert after is None or after >= now


@checked
@given(SCHEDULES, INSTANTS, st.timedeltas(timedelta(0), SPAN))
def test_a_span_may_be_split_anywhere(
    schedule: CronSchedule, since: datetime, first: timedelta
) -> None:
    middle, until = since + first, since + SPAN
    whole = schedule.between(since, until)

    assert schedule.between(since, middle) + schedule.between(middle, until) == whole
    assert schedule.count(since, until) == len(whole)
    assert schedule.last(since, until) == (whole[-1] if whole else None)
    assert whole == sorted(set(whole))


@checked
@given(SCHEDULES, INSTANTS, INSTANTS)
def test_counts_of_parts_add_up(schedule: CronSchedule, one: datetime, other: datetime) -> None:
    start, end = datetime(1970, 1, 1, tzinfo=UTC), datetime(2199, 12, 31, tzinfo=UTC)
    low, high = min(one, other), max(one, other)

    parts = [schedule.count(start, low), schedule.count(low, high), schedule.count(high, end)]

    assert sum(parts) == schedule.count(start, end)
