"""The hostile corpus: no file takes more memory or time than the limits, and the worker lives.

`make test-slow` reads the small files and those of the audit; `make chaos` reads all.
"""

import re
from pathlib import Path

import pytest

from tests.hostile.bounds import read_in_bounds
from tests.hostile.corpus import Hostile, corpus

HEAVY = [one for one in corpus() if one.is_heavy]
LIGHT = [one for one in corpus() if not one.is_heavy]
# Each ends by a limit; the bytes are those of the audit.
AUDITED = {
    "csv-commas": "has 134,217,729 columns|SCHED_FETCH_MEMORY_MB=256",
    "json-one-wide-object": "SCHED_FETCH_(CPU_S=3|MEMORY_MB=256)",
    "parquet-repeated": "32 times SCHED_FETCH_MAX_BYTES|SCHED_FETCH_(CPU_S=3|MEMORY_MB=256)",
}


def read(one: Hostile, folder: Path) -> str:
    return read_in_bounds(one.name, one.format, one.made, folder)


# In chunks: a test of its own for each file would take longer than the file.
@pytest.mark.parametrize("start", range(0, len(LIGHT), 10))
def test_no_small_file_exceeds_the_limits(tmp_path: Path, start: int) -> None:
    for one in LIGHT[start : start + 10]:
        read(one, tmp_path)


@pytest.mark.parametrize("name", AUDITED)
def test_what_the_audit_found_ends_by_a_limit_that_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (one for one in HEAVY if one.name == name)

    assert re.search(AUDITED[name], read(found, tmp_path))


@pytest.mark.storm
@pytest.mark.parametrize("one", HEAVY, ids=lambda one: one.name)
def test_no_heavy_file_exceeds_the_limits(tmp_path: Path, one: Hostile) -> None:
    read(one, tmp_path)
