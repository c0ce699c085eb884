"""Before an upload: does the package index have our names already?

    python release/names.py

It asks by pip, and so the index that pip is set to. The exit code is 1 if a name is taken, or if
the index gave no answer.
"""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACES = ("pyproject.toml", "release/client/pyproject.toml")


def main() -> int:
    """Print a line for each name; return the exit code."""
    codes = []
    for place in PLACES:
        project = tomllib.loads((ROOT / place).read_text(encoding="utf-8"))["project"]
        is_free, said = asked(project["name"])
        print(f"{project['name']} {project['version']}: {said}")
        codes.append(0 if is_free else 1)
    return max(codes)


def asked(name: str) -> tuple[bool, str]:
    """Return whether the index lacks a name, and what it says."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "index",
        "versions",
        name,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return False, f"taken, {done.stdout.splitlines()[0]}; raise the version if it is ours"
    if f"No matching distribution found for {name}" in done.stderr:
        return True, "the name is free"
    return False, f"the index did not answer: {(done.stderr.strip().splitlines() or ['-'])[-1]}"


if __name__ == "__main__":
    sys.exit(main())
