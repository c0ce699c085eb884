"""A process that is killed while it writes a snapshot."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from small_apps import snapshots

ROOT = Path(__file__).parents[3]
WRITER = """
import sys
from pathlib import Path
from uuid import UUID
from small_apps import snapshots

def rows():
    yield {"id": 2}
    print("half", flush=True)
    sys.stdin.read()

snapshots.write(Path(sys.argv[1]), "demo", "a", UUID(int=2), rows())
"""


def test_a_killed_writer_leaves_the_old_snapshot_and_a_part_that_goes_later(tmp_path: Path) -> None:
    old = snapshots.write(tmp_path, "demo", "a", UUID(int=1), [{"id": 1}])
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"half\n"
        writer.kill()

    found = sorted(path.name for path in (tmp_path / old.path).parent.iterdir())
    assert found == [f"{UUID(int=1)}.jsonl", f"{UUID(int=2)}.jsonl.part"]
    assert list(snapshots.read(tmp_path, old.path)) == [{"id": 1}]
    part = tmp_path / f"snapshots/demo/a/{UUID(int=2)}.jsonl.part"
    late = datetime.fromtimestamp(part.stat().st_mtime, UTC) + 2 * snapshots.ORPHAN_AGE
    assert list(snapshots.orphans(tmp_path, "demo", {old.path}, late)) == [
        str(part.relative_to(tmp_path))
    ]
