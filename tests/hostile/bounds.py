"""Reading of a hostile file within limits, and what then has to hold."""

from collections.abc import Callable
from pathlib import Path

from data.failures import SourceFailed
from data.importing import Data
from data.importing.in_child import import_in_child
from data.settings import FetchSettings
from runtime.clock import monotonic
from tasks.bounded.limits import Exit
from tasks.bounded.watch import Watch

# The default allows more of everything.
LIMITS = FetchSettings(memory_mb=256, cpu_s=3, import_s=60, max_bytes=160 << 20, threads=1)
LONGEST_ERROR = 2_000
# What a process needs before its limits hold.
STARTED_S = 1


def read_in_bounds(name: str, format: str, made: Callable[[], bytes], folder: Path) -> str:
    """Read a hostile file; return the error, or an empty text. Fails if a limit was exceeded."""
    file = folder / "given"
    file.write_bytes(made())
    ends: list[Exit] = []
    began, error = monotonic(), ""
    try:
        data = Data(file, format, "source")
        import_in_child(LIMITS, data, folder / "made.parquet", None, Watch(), ends.append)
    except SourceFailed as failed:
        error = str(failed)
    (took,) = ends
    used = f"{name}: {took}, {error}"
    assert took.peak_mb <= 1.2 * LIMITS.memory_mb, used
    assert took.cpu_s <= 1.2 * LIMITS.cpu_s + STARTED_S, used
    assert monotonic() - began <= 1.2 * LIMITS.import_s, used
    assert "\n" not in error, used
    assert len(error) < LONGEST_ERROR, used
    return error
