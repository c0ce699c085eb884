"""What an application exports of its schedule, and what becomes of the entries, by their names."""

import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from interop.beat_file import entries_of
from interop.outcomes import Outcome, outcomes
from models.action.document import ParseContext
from tasks.built_in import built_in_steps

NOW = datetime(2026, 11, 22, 15, tzinfo=UTC)
CONTEXT = ParseContext("UTC", NOW, built_in_steps(), created_at=NOW, celery=None)
ROOT = Path(__file__).parents[1]


def export(
    folder: Path, *arguments: str, **environment: str
) -> "subprocess.CompletedProcess[bytes]":
    """Export the schedule of the application `shop` of a folder."""
    command = [sys.executable, "-P", "-m", "minutebook", "export", "-A", "shop", *arguments]
    its = {"PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        command, check=False, cwd=folder, env=its, capture_output=True, timeout=60
    )


def moved(written: Any, now: datetime = NOW) -> dict[str, Outcome]:
    """Return what becomes of an exported schedule."""
    entries = entries_of(written, "beat.json", now)
    return {one.name: one for one in outcomes(entries, CONTEXT)}


def document(found: Mapping[str, Outcome], name: str) -> dict[str, Any]:
    """Return the document of an entry that became an action."""
    made = found[name].document
    assert made is not None, found[name]
    return made


def names(found: Mapping[str, Outcome], kind: str) -> set[str]:
    """Return the names of the entries with that outcome."""
    return {name for name, one in found.items() if one.kind == kind}
