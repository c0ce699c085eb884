from importlib.resources import files
from itertools import pairwise
from zoneinfo._common import load_data

import pytest

from cron import CronSchedule, InvalidRule
from cron.zone import END, zone_named
from tests.tables import table
from tests.unit.cron.debian import offset, wheel_names, wheel_zone

SHIFT = 365 * 86400


def distinct_names() -> list[str]:
    """Return one name for each distinct file of the wheel."""
    folder = files("tzdata").joinpath("zoneinfo")
    content = {folder.joinpath(*name.split("/")).read_bytes(): name for name in wheel_names()}
    return sorted(content.values())


DISTINCT = distinct_names()


@pytest.mark.parametrize(
    ("name", "expected"), table(__file__, "a_zone_keeps_its_name_in_canonical_spelling")
)
def test_a_zone_keeps_its_name_in_canonical_spelling(name: str, expected: str) -> None:
    assert expected == CronSchedule("* * * * *", name).zone


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        *table(__file__, "an_unknown_zone_is_refused_with_the_nearest_name"),
        pytest.param("x" * 10**6, "an IANA name such as", id="a_million_letters"),
    ],
)
def test_an_unknown_zone_is_refused_with_the_nearest_name(name: str, remedy: str) -> None:
    with pytest.raises(InvalidRule) as caught:
        CronSchedule("* * * * *", name)

    assert caught.value.field == "zone"
    assert remedy in str(caught.value)
    assert len(str(caught.value)) < 200


def test_every_name_of_the_wheel_is_a_zone() -> None:
    names = wheel_names()

    assert names == [zone_named(name).name for name in names]
    assert len(names) > 590


def test_every_change_of_every_zone_up_to_2200_is_where_zoneinfo_has_it() -> None:
    wrong = []
    for name in DISTINCT:
        zone, periods = wheel_zone(name), zone_named(name).wildcard
        for period in periods:
            expected = period.shift - SHIFT
            found = {offset(zone, period.start), offset(zone, period.end - 1)}
            if found != {expected}:
                wrong.append((name, period, found))

    assert wrong == []


def test_no_change_of_any_zone_is_overlooked() -> None:
    wrong = []
    for name in DISTINCT:
        zone, periods = wheel_zone(name), zone_named(name).wildcard
        recent = [period for period in periods if period.start < 2_300_000_000]
        for period in recent:
            seconds = range(period.start, min(period.end, 2_300_000_000), 50 * 86400)
            if {offset(zone, second) for second in seconds} - {period.shift - SHIFT}:
                wrong.append((name, period))

    assert wrong == []


def test_the_stretches_of_every_zone_follow_each_other_without_a_gap() -> None:
    for name in DISTINCT:
        zone = zone_named(name)
        for periods in (zone.wildcard, zone.fixed):
            assert zone.starts == tuple(period.start for period in periods)
            assert periods[0].start == 0
            assert periods[-1].end == END
            assert all(one.end == other.start for one, other in pairwise(periods))


def test_no_two_changes_of_a_zone_lie_so_close_that_both_are_overlooked() -> None:
    """Nor does one change again before a fixed rule has caught up."""
    close = []
    for name in DISTINCT:
        with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
            kinds, changes, offsets, *_ = load_data(file)
        listed = [(at, offsets[kind]) for at, kind in zip(changes, kinds, strict=True) if at > 0]
        real = [at for (_, old), (at, new) in pairwise(listed) if old != new]
        close += [(name, one) for one, other in pairwise(real) if other - one < 6 * 86_400]

    assert close == []
