"""Every request that leaves goes through `runtime.egress`; nothing else holds an HTTP client."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = (
    "broker", "cli", "cron", "data", "interop", "minutebook", "models", "processes", "release",
    "runtime", "scheduler", "services", "tasks", "web",
)  # fmt: skip
CLIENTS = frozenset(
    (
        "aiohttp", "apprise", "ftplib", "http.client", "httpcore", "httplib2", "httpx", "pycurl",
        "requests", "urllib.request", "urllib3", "websockets", "xmlrpc.client",
    )
)  # fmt: skip
# What each of these asks, in place of an address that an app or a setting names.
ALLOWED = {
    "cli/remote": "the API of Minutebook elsewhere, which the person at the keyboard names",
    "minutebook/client.py": "the API of Minutebook, from the user's program",
    "minutebook/django/sending.py": "the API of Minutebook, from the user's Django",
    "minutebook/server.py": "the server that a worker follows, which its operator names",
    "runtime/egress": "the one client",
    "tasks/children/apprise_message.py": "Apprise, confined in a child process",
}


def clients_in(text: str) -> Iterator[str]:
    """Yield each HTTP client that a module's text imports, wherever it does."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import():
                names = [one.name for one in node.names]
            case ast.ImportFrom(module=str(module)):
                names = [module, *(f"{module}.{one.name}" for one in node.names)]
            case ast.Call(func, [ast.Constant(value=str(name)), *_]) if _is_client(name):
                names = [name] if "import" in ast.dump(func) else []
            case _:
                continue
        yield from filter(_is_client, names)


def _is_client(name: str) -> bool:
    return any(name == one or name.startswith(f"{one}.") for one in CLIENTS)


def test_no_other_module_holds_an_http_client() -> None:
    paths = (*ROOT.glob("*.py"), *(p for room in ROOMS for p in (ROOT / room).rglob("*.py")))
    found = {str(path.relative_to(ROOT)) for path in paths if any(clients_in(path.read_text()))}

    assert {path for path in found if not path.startswith(tuple(ALLOWED))} == set()
    assert all(any(path.startswith(one) for path in found) for one in ALLOWED)
