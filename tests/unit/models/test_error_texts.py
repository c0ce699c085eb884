"""What is refused names an argument as every door knows it: options belong to commands alone."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
# What answers requests over HTTP, and pages.
ASKED = ("services", "models", "scheduler", "data", "tasks", "web")
# What commands on this machine alone call.
COMMANDS_ONLY = {
    "services/installation.py",
    "services/simulation.py",
    "interop/services/imports.py",
}
ERRORS = {
    *("Refused", "NotFound", "Outdated", "SchedulerError", "Problem", "instant_of", "_read"),
    *("Hint", "InvalidDocument", "Forbidden"),
}
OPTION = re.compile(r"(?<![\w-])--[a-z]")


def texts(node: ast.AST) -> str:
    """Return all text of an expression, but for the calls within."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.Call):
        return ""
    return " ".join(texts(child) for child in ast.iter_child_nodes(node))


def faults(source: str) -> Iterator[str]:
    """Yield each text of an error that names an option, and each hint that has no other words."""
    for call in ast.walk(ast.parse(source)):
        name = getattr(call, "func", None)
        if not isinstance(call, ast.Call) or getattr(name, "id", "") not in ERRORS:
            continue
        given = [texts(one) for one in (*call.args, *(key.value for key in call.keywords))]
        if isinstance(name, ast.Name) and name.id == "Hint":
            has_other = len(call.args) > 2 or any(key.arg == "http" for key in call.keywords)
            given = given[1:] if has_other else given
        yield from (one for one in given if OPTION.search(one))


def test_no_error_names_an_option() -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for room in (*ASKED, "interop")
        for path in (ROOT / room).rglob("*.py")
        if any(faults(path.read_text(encoding="utf-8")))
    }

    assert found == COMMANDS_ONLY
