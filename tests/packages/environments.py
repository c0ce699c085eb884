"""Environments that hold what users install: a wheel, and libraries beside it."""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# The libraries of the tests, without the links to our source that lie among them: Python reads
# those for its own folders alone.
LIBRARIES = sysconfig.get_path("purelib")


@dataclass(frozen=True)
class Environment:
    """A virtual environment, and the directory in which its programs stand."""

    folder: Path

    @property
    def bin(self) -> Path:
        return self.folder / "bin"

    def install(self, *what: str, is_offline: bool = True) -> None:
        """Install wheels alone, or with all that they need."""
        offline = ("--no-index", "--no-deps") if is_offline else ()
        pip = (sys.executable, "-m", "pip", "--python", str(self.bin / "python"), "install", "-q")
        subprocess.run([*pip, *offline, *what], check=True, capture_output=True, text=True)

    def see_libraries(self, without: Sequence[str] = ()) -> None:
        """Let it import the libraries of the tests, but for some, without what is ours."""
        lib = next((self.folder / "lib").glob("python3.*")) / "site-packages"
        seen = Path(LIBRARIES)
        if without:
            seen = self.folder / "libraries"
            seen.mkdir()
            for one in Path(LIBRARIES).iterdir():
                if one.name not in without:
                    (seen / one.name).symlink_to(one)
        (lib / "libraries.pth").write_text(f"{seen}\n")

    def python(
        self, code: str, folder: Path, settings: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run Python code, standing in `folder`."""
        return self.run([str(self.bin / "python"), "-c", code], folder, settings)

    def run(
        self, command: Sequence[str], folder: Path, settings: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command with no variables but PATH and the settings."""
        return subprocess.run(
            command,
            cwd=folder,
            env={"PATH": "/usr/bin:/bin", **(settings or {})},
            capture_output=True,
            text=True,
            check=False,
        )


def make_environment(folder: Path, python: str = sys.executable) -> Environment:
    subprocess.run(
        [python, "-m", "venv", "--without-pip", str(folder)], check=True, capture_output=True
    )
    return Environment(folder)


def python_of(version: str) -> str:
    """Return a Python of this version, such as 3.12; skips the test without one."""
    found = find_python(version)
    if found is None:
        pytest.skip(f"no Python {version} is installed here")
    return found


def find_python(version: str) -> str | None:
    folders = (Path.home() / ".pyenv" / "versions").glob(f"{version}.*")
    found = next((str(one / "bin" / "python") for one in folders), None)
    return found or shutil.which(f"python{version}")


def passes(
    tests: Sequence[str],
    *options: str,
    python: Sequence[str] = (sys.executable,),
    servers: Path | None = None,
) -> None:
    """Run tests with another Python, or with the servers of a folder."""
    environment = dict(os.environ)
    if servers is not None:
        environment["PATH"] = f"{servers}:{environment['PATH']}"
    command = [*python, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2"]
    command += ["-m", "not storm and not matrix", *tests, *options]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert " passed" in done.stdout


@dataclass(frozen=True)
class Wheels:
    """What `make dist` makes."""

    folder: Path

    @property
    def client(self) -> Path:
        return next(self.folder.glob("minutebook_client-*.whl"))

    @property
    def server(self) -> Path:
        return next(self.folder.glob("minutebook-*.whl"))


def build_wheels(folder: Path) -> Wheels:
    """Build both distributions, as `make dist` does."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1767225600"}
    for package in ("release/client", "."):
        subprocess.run(
            [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), package],
            cwd=ROOT,
            env=environment,
            check=True,
            capture_output=True,
        )
    return Wheels(folder)
