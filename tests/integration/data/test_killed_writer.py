"""A process that is killed while it writes a snapshot."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from data import snapshots
from data.importing import Data
from data.settings import Settings
from data.snapshots import Place
from tasks.bounded.limits import Watch

ROOT = Path(__file__).parents[3]
WRITER = """
import sys
from pathlib import Path
from uuid import UUID
from data.settings import Settings
from data import snapshots
from data.snapshots import stores
from data.importing import Data
from data.snapshots import Place
from tasks.bounded.limits import Watch

def wait(*_):
    print("half", flush=True)
    sys.stdin.read()

# The file lies under its passing name; the rename is what does not come to pass.
stores._sync = wait
home = Path(sys.argv[1])
data = Data(home / "s", "csv", "s")
snapshots.write(Settings(home=home), Place("demo", "a", UUID(int=2)), data, Watch())
"""


def test_a_killed_writer_leaves_the_old_snapshot_and_removable_leftovers(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    (tmp_path / "s").write_text("id\n1\n")
    data = Data(tmp_path / "s", "csv", "s")
    old = snapshots.write(settings, Place("demo", "a", UUID(int=1)), data, Watch())
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"half\n"
        writer.kill()

    found = sorted(path.name for path in (tmp_path / old.path).parent.iterdir())
    assert found == [f"{UUID(int=1)}.parquet", f"{UUID(int=2)}.parquet.part"]
    assert list(snapshots.read(settings, old.path)) == [{"id": 1}]
    part = tmp_path / f"snapshots/demo/a/{UUID(int=2)}.parquet.part"
    late = datetime.fromtimestamp(part.stat().st_mtime, UTC) + 2 * snapshots.ORPHAN_AGE
    assert list(snapshots.orphans(settings, "demo", {old.path}, late)) == [
        str(part.relative_to(tmp_path))
    ]
    assert snapshots.remove_leftovers(tmp_path, "demo", ["a"], late) == 1
    assert list((tmp_path / "scratch/demo").iterdir()) == []
