"""What no source may hold: an HTTP client of its own, an error that names an option."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = (
    *("broker", "cli", "cron", "data", "interop", "minutebook", "models", "processes", "release"),
    *("runtime", "scheduler", "services", "tasks", "web"),
)
CLIENTS = (
    *("aiohttp", "apprise", "ftplib", "http.client", "httpcore", "httplib2", "httpx", "pycurl"),
    *("requests", "urllib.request", "urllib3", "websockets", "xmlrpc.client"),
)
# What each of these asks, in place of an address that an app or a setting names.
ALLOWED = {
    "cli/remote": "the API of Minutebook elsewhere, which the person at the keyboard names",
    "minutebook/client.py": "the API of Minutebook, from the user's program",
    "minutebook/django/sending.py": "the API of Minutebook, from the user's Django",
    "minutebook/server.py": "the server that a worker follows, which its operator names",
    "runtime/egress": "the one client",
    "tasks/children/apprise_message.py": "Apprise, confined in a child process",
}
# What answers requests over HTTP, and pages; beside it, what commands on this machine alone call.
ASKED = ("services", "models", "scheduler", "data", "tasks", "web", "interop")
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


def sources(*rooms: str) -> Iterator[tuple[str, ast.Module]]:
    """Yield each module of these folders, by its path."""
    for room in rooms:
        for path in (ROOT / room).rglob("*.py") if room else ROOT.glob("*.py"):
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def clients_in(module: ast.Module) -> Iterator[str]:
    """Yield each HTTP client that a module imports, wherever it does."""
    for node in ast.walk(module):
        match node:
            case ast.Import():
                names = [one.name for one in node.names]
            case ast.ImportFrom(module=str(name)):
                names = [name, *(f"{name}.{one.name}" for one in node.names)]
            case ast.Call(func, [ast.Constant(value=str(name)), *_]):
                names = [name] if "import" in ast.dump(func) else []
            case _:
                continue
        yield from (one for one in names if f"{one}.".startswith(tuple(f"{c}." for c in CLIENTS)))


def test_no_other_module_holds_an_http_client() -> None:
    found = {path for path, module in sources("", *ROOMS) if any(clients_in(module))}

    assert {path for path in found if not path.startswith(tuple(ALLOWED))} == set()
    assert all(any(path.startswith(one) for path in found) for one in ALLOWED)


def texts(node: ast.AST) -> str:
    """Return all text of an expression, but for the calls within."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.Call):
        return ""
    return " ".join(texts(child) for child in ast.iter_child_nodes(node))


def options_in(module: ast.Module) -> Iterator[str]:
    """Yield each text of an error that names an option, and each hint that has no other words."""
    for call in ast.walk(module):
        name = getattr(getattr(call, "func", None), "id", "")
        if not isinstance(call, ast.Call) or name not in ERRORS:
            continue
        given = [texts(one) for one in (*call.args, *(key.value for key in call.keywords))]
        if name == "Hint" and (len(call.args) > 2 or any(k.arg == "http" for k in call.keywords)):
            given = given[1:]
        yield from (one for one in given if OPTION.search(one))


def test_no_error_names_an_option() -> None:
    """Every door knows an argument by its name; options belong to commands alone."""
    assert {path for path, module in sources(*ASKED) if any(options_in(module))} == COMMANDS_ONLY
