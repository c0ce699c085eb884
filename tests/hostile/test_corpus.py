"""The hostile corpus: no file takes more memory or time than the limits, and the worker lives.

`make test` reads the small files and those of the audit; `make chaos` reads all, each on its own.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from runtime.clock import monotonic
from runtime.data_sections import FetchSettings
from small_apps.bounded.limits import Exit
from small_apps.failures import SourceFailed
from small_apps.importing import Data
from small_apps.importing.in_child import import_in_child
from tests.hostile.corpus import Hostile, corpus

# The default allows more of everything.
LIMITS = FetchSettings(memory_mb=256, cpu_s=3, import_s=60, max_bytes=160 << 20, threads=1)
HEAVY = [one for one in corpus() if one.is_heavy]
LIGHT = [one for one in corpus() if not one.is_heavy]
# Each ends by a limit; the bytes are those of the audit.
AUDITED = {
    "csv-commas": "has 134,217,729 columns|SCHED_FETCH_MEMORY_MB=256",
    "json-one-wide-object": "SCHED_FETCH_(CPU_S=3|MEMORY_MB=256)",
    "parquet-repeated": "32 times SCHED_FETCH_MAX_BYTES|SCHED_FETCH_(CPU_S=3|MEMORY_MB=256)",
}

Read = Callable[[Hostile], str]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Read a hostile file in bounds; return the error, or an empty text."""

    def one(hostile: Hostile) -> str:
        file = tmp_path / "given"
        file.write_bytes(hostile.made())
        ends: list[Exit] = []
        began, error = monotonic(), ""
        try:
            data = Data(file, hostile.format, "source")
            import_in_child(LIMITS, data, tmp_path / "made.parquet", None, ends.append)
        except SourceFailed as failed:
            error = str(failed)
        (took,) = ends
        used = f"{hostile.name}: {took}, {error}"
        assert took.peak_mb <= 1.2 * LIMITS.memory_mb, used
        assert took.cpu_s <= 1.2 * LIMITS.cpu_s, used
        assert monotonic() - began <= 1.2 * LIMITS.import_s, used
        assert "\n" not in error, used
        assert len(error) < 2_000, used
        return error

    return one


def test_the_corpus_has_hundreds_of_files() -> None:
    names = [one.name for one in corpus()]

    assert len(names) == len(set(names)) >= 200


# In chunks: a test of its own for each file would take longer than the file.
@pytest.mark.parametrize("start", range(0, len(LIGHT), 20))
def test_no_small_file_exceeds_the_limits(read: Read, start: int) -> None:
    for one in LIGHT[start : start + 20]:
        read(one)


@pytest.mark.parametrize("name", AUDITED)
def test_what_the_audit_found_ends_by_a_limit_that_is_named(read: Read, name: str) -> None:
    (found,) = (one for one in HEAVY if one.name == name)

    assert re.search(AUDITED[name], read(found))


@pytest.mark.storm
@pytest.mark.parametrize("one", HEAVY, ids=lambda one: one.name)
def test_no_heavy_file_exceeds_the_limits(read: Read, one: Hostile) -> None:
    read(one)
