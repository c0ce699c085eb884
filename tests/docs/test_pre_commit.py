"""A commit is checked by what `make lint` runs, with the environment of the checkout."""

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
CONFIGURATION = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
HOOKS: list[dict[str, Any]] = [
    hook for source in CONFIGURATION["repos"] for hook in source["hooks"]
]


def linted() -> list[str]:
    """Return the commands of `make lint`."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    found = re.search(r"^lint:.*\n((?:\t.*\n)+)", makefile, re.M)
    assert found is not None
    return [line.strip().replace("$(BIN)", ".venv/bin") for line in found[1].splitlines()]


def test_hooks_run_what_make_lint_runs() -> None:
    assert [hook["entry"] for hook in HOOKS] == linted()


def test_hooks_install_nothing_and_check_the_whole_tree() -> None:
    assert [source["repo"] for source in CONFIGURATION["repos"]] == ["local"]
    assert all(hook["language"] == "system" for hook in HOOKS)
    assert not any(hook["pass_filenames"] for hook in HOOKS)
