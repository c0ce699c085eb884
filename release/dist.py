"""Build what is published: `minutebook-client` and `minutebook`, a wheel and an sdist of each.

    python -m release.dist FOLDER

The same source gives the same bytes: times, owners and the order of files are fixed.
"""

import gzip
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# 2026-01-01: a zip file knows no time before 1980.
EPOCH = 1_767_225_600
BUILD = """
import sys
from setuptools import build_meta

# The first call changes sys.argv.
target = sys.argv[1]
build_meta.build_wheel(target)
build_meta.build_sdist(target)
"""
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "*.py[co]")


def build_all(target: Path) -> list[Path]:
    """Build both distributions into `target`; return their files.

    Files of an earlier build go: `pip install dist/*.whl` refuses two releases of one package.
    """
    target.mkdir(parents=True, exist_ok=True)
    for old in (*target.glob("minutebook-*"), *target.glob("minutebook_client-*")):
        old.unlink()
    made: list[Path] = []
    for stage in (_stage_client, _stage_server):
        with tempfile.TemporaryDirectory(prefix="minutebook-dist-") as folder:
            stage(Path(folder) / "source")
            made += _build(Path(folder), target)
    return made


def _stage_client(folder: Path) -> None:
    # Follows the link to the package.
    shutil.copytree(ROOT / "release" / "client", folder, ignore=LEFT_OUT)


def _stage_server(folder: Path) -> None:
    """Copy the server's files alone, so that nothing that lies about gets into a package."""
    folder.mkdir()
    for name in ("pyproject.toml", "README.md", "scheduler_server.py"):
        shutil.copy2(ROOT / name, folder / name)
    for room in _rooms():
        shutil.copytree(ROOT / room, folder / room, ignore=LEFT_OUT)


def _rooms() -> list[str]:
    given = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = given["tool"]["setuptools"]["packages"]["find"]["include"]
    return sorted(pattern.rstrip("*") for pattern in patterns)


def _build(folder: Path, target: Path) -> list[Path]:
    out = folder / "out"
    out.mkdir()
    _set_times(folder / "source")
    fixed = {**os.environ, "SOURCE_DATE_EPOCH": str(EPOCH), "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(out)],
        cwd=folder / "source",
        env=fixed,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    for one in out.glob("*.tar.gz"):
        one.write_bytes(_normal(one.read_bytes()))
    return [Path(shutil.move(one, target / one.name)) for one in sorted(out.iterdir())]


def _set_times(folder: Path) -> None:
    for one in folder.rglob("*"):
        one.chmod(0o755 if one.is_dir() else 0o644)
        os.utime(one, (EPOCH, EPOCH))


def _normal(sdist: bytes) -> bytes:
    """Return an sdist with fixed times and owners, its files in order."""
    packed = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(sdist)) as source,
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=EPOCH, filename="") as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as made,
    ):
        for member in sorted(source.getmembers(), key=lambda one: one.name):
            content = source.extractfile(member)
            member.mtime, member.uid, member.gid = EPOCH, 0, 0
            member.uname = member.gname = ""
            member.pax_headers = {}
            made.addfile(member, content)
    return packed.getvalue()


if __name__ == "__main__":
    for path in build_all(Path(sys.argv[1])):
        print(f"{path}  {path.stat().st_size / 1000:.0f} kB")
