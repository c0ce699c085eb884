"""Compare the cron kernel with croniter 7: a table, then one line of JSON.

    python benchmarks/bench_cron.py [--repeats 7]

Twenty typical rules in Europe/Paris at noon of an ordinary day. A figure is the CPU time of one
call in microseconds: the median over the repeats of the mean over all rules.
"""

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from statistics import median
from time import process_time
from zoneinfo import ZoneInfo

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from croniter import croniter

from cron import (
    CronSchedule,
    WallClock,
    in_words,
    recurrence,
    recurrent_days,
    rule,
    tz_release,
    zone,
)
from cron.recurrence import read_recurrence
from cron.recurrent_days import RecurrentMinutes

ZONE = "Europe/Paris"
NOON = datetime(2026, 7, 1, 10, 0, tzinfo=UTC)
LOCAL_NOON = NOON.astimezone(ZoneInfo(ZONE))
FIRST = datetime(1970, 1, 1, tzinfo=UTC)
LAST = datetime(2199, 12, 31, tzinfo=UTC)
RULES = (
    *("* * * * *", "*/5 * * * *", "*/15 * * * *", "0 * * * *", "30 * * * *"),
    *("0 0 * * *", "0 7 * * *", "30 2 * * *", "0 4 * * *", "0 7,19 * * *"),
    *("0 7 * * 1", "0 9 * * 1-5", "*/10 9-17 * * 1-5", "0 */2 * * *", "0 18 * * 5"),
    *("0 0 1 * *", "0 6 1,15 * *", "0 0 1 1 *", "15 10 * * 6,0", "0 12 13 * 5"),
)
SCHEDULES = [CronSchedule(text, ZONE) for text in RULES]
CRONITERS = [croniter(text, LOCAL_NOON) for text in RULES]


SIGNS = ("0 9 L * *", "0 9 * * mon#2", "0 18 * * friL", "0 9 15W * *", "30 7 L-3 * *")
SIGNED = [CronSchedule(text, ZONE) for text in SIGNS]
RECURRENCES = (
    *("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO", "FREQ=DAILY;INTERVAL=3", "FREQ=MONTHLY;BYDAY=-1FR"),
    *("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", "FREQ=YEARLY;BYMONTH=5;BYDAY=2SU"),
)
SINCE = date(2020, 1, 6)


def recurrent(text: str) -> WallClock:
    return WallClock(RecurrentMinutes(read_recurrence(text), [540], SINCE), ZONE)


RECURRENT = [recurrent(text) for text in RECURRENCES]


def ask_next_signed() -> None:
    for schedule in SIGNED:
        schedule.next(NOON)


def parse_signed() -> None:
    rule._parsed.cache_clear()
    for text in SIGNS:
        CronSchedule(text, ZONE)


def ask_next_recurrent() -> None:
    for schedule in RECURRENT:
        schedule.next(NOON)


def parse_recurrent() -> None:
    recurrence._read.cache_clear()
    recurrent_days.recurrent_days.cache_clear()
    for text in RECURRENCES:
        recurrent(text)


def ask_next() -> None:
    for schedule in SCHEDULES:
        schedule.next(NOON)


def ask_previous() -> None:
    for schedule in SCHEDULES:
        schedule.previous(NOON)


def ask_last() -> None:
    for schedule in SCHEDULES:
        schedule.last(NOON, NOON)


def count_230_years() -> None:
    for schedule in SCHEDULES:
        schedule.count(FIRST, LAST)


def parse() -> None:
    rule._parsed.cache_clear()
    for text in RULES:
        CronSchedule(text, ZONE)


def parse_cached() -> None:
    for text in RULES:
        CronSchedule(text, ZONE)


def read_zone() -> None:
    for _ in RULES:
        zone._zone.cache_clear()
        zone._of_file.cache_clear()
        zone._zone(ZONE)


def write_words() -> None:
    for text in RULES:
        in_words(text)


def croniter_next() -> None:
    for one in CRONITERS:
        one.get_next(datetime, start_time=LOCAL_NOON)


def croniter_previous() -> None:
    for one in CRONITERS:
        one.get_prev(datetime, start_time=LOCAL_NOON)


def croniter_parse() -> None:
    for text in RULES:
        croniter(text, LOCAL_NOON)


def microseconds(act: Callable[[], None], rounds: int, repeats: int, rules: int) -> float:
    """Return the CPU time of one call for one rule, as the median over `repeats`."""
    act()
    figures = []
    for _ in range(repeats):
        start = process_time()
        for _ in range(rounds):
            act()
        figures.append((process_time() - start) / rounds / rules * 1e6)
    return median(figures)


MEASURED: dict[str, tuple[Callable[[], None], int, Callable[[], None] | None]] = {
    "next": (ask_next, 1000, croniter_next),
    "previous": (ask_previous, 1000, croniter_previous),
    "last of an empty span": (ask_last, 1000, None),
    "parse and construct": (parse, 200, croniter_parse),
    "construct, parsed before": (parse_cached, 1000, None),
    "count over 230 years": (count_230_years, 2, None),
    "read a zone": (read_zone, 2, None),
    "words": (write_words, 50, None),
    "next, with signs": (ask_next_signed, 1000, None),
    "parse, with signs": (parse_signed, 200, None),
    "next, recurrence": (ask_next_recurrent, 1000, None),
    "parse, recurrence": (parse_recurrent, 200, None),
}
# How many rules each of these asks about; the others ask about all of RULES.
FEWER = {ask_next_signed, parse_signed, ask_next_recurrent, parse_recurrent}


def main() -> None:
    parser = argparse.ArgumentParser(description="the cron kernel beside croniter")
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats

    rows = []
    print(f"{'microseconds a call':<26}{'cron':>10}{'croniter':>10}{'ratio':>8}")
    for name, (ours, rounds, theirs) in MEASURED.items():
        figure = microseconds(ours, rounds, repeats, len(SIGNS) if ours in FEWER else len(RULES))
        other = 0.0 if theirs is None else microseconds(theirs, 10, repeats, len(RULES))
        beside = f"{other:>10.1f}{other / figure:>7.0f}x" if other else ""
        print(f"{name:<26}{figure:>10.3f}{beside}")
        rows.append({"call": name, "us": round(figure, 3), "croniter_us": round(other, 1) or None})

    machine = {"cpus": os.cpu_count(), "python": platform.python_version(), "tz": tz_release()}
    date = datetime.now(UTC).date().isoformat()  # noqa: TID251 - the day of the measurement
    print(json.dumps({"date": date, **machine, "repeats": repeats, "rows": rows}))


if __name__ == "__main__":
    main()
