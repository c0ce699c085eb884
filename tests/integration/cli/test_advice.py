"""What a refused command says to write instead works when it is followed to the letter."""

import json
import shlex
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from cli.main import run
from tests.integration.cli.conftest import Call

ACTION = {"name": "a", "when": {"cron_rule": "0 3 * * *"}, "operations": {"maintenance": {}}}
LATER = "2027-01-01T00:00Z"
INSTANT = "2026-12-24T18:00:00+01:00"
FILES: dict[str, object] = {
    "a.json": ACTION,
    "c.json": {**ACTION, "name": "c"},
    "rule.json": {**ACTION, "name": "d", "when": {"cron_rule": "61 3 * * *"}},
    "top.json": {**ACTION, "task": "shop.x"},
    "big.json": [{**ACTION, "name": f"n{n}", "note": "x" * 3_000} for n in range(100)],
    "half.json": [{**ACTION, "name": f"n{n}"} for n in range(50)],
    "shop.json": {"name": "shop", "zone": "UTC"},
}
PAST = "backfill a --from P3D --to now --dry-run"
# A wrong command, what its error advises, and the command with the advice followed.
ADVICE = [
    # A value that is none of a few.
    ("run list --state fail", "'failed'", "run list --state failed"),
    ("action list --standing bad", "'paused'", "action list --standing paused"),
    ("token create --role reader", "'viewer'", "token create --role viewer"),
    ("token create", "Choose from: viewer,", "token create --role viewer"),
    ("run retry --state success", "choose one of these", "run retry --state failed"),
    ("status --check", "--help says which", "status --help"),
    ("backfill a --from P3D --to now --only x", "'missing'", f"{PAST} --only missing"),
    ("action next a --count 0", "greater than or equal to 1", "action next a --count 1"),
    # An instant, a duration or a name that cannot be read.
    ("run list --since soon", INSTANT, f"run list --since {INSTANT}"),
    (
        "simulate c.json --from 2026",
        INSTANT,
        f"simulate c.json --from {INSTANT} --to {LATER}",
    ),
    ("simulate c.json --down x", "FROM/TO", f"simulate c.json --down {INSTANT}/2026-12-25T18:00Z"),
    ("action explain a yesterdy", INSTANT, f"action explain a {INSTANT}"),
    ("pause --all --until P60D", "P30D", "pause --all --until P30D"),
    ("token create --role viewer --expires 90", "P1D", "token create --role viewer --expires P1D"),
    (
        "token create --role viewer --name ''",
        "such as Ann",
        "token create --role viewer --name Ann",
    ),
    (
        "job add --url x",
        "https://example.com/data.csv",
        "job add --url https://example.com/data.csv",
    ),
    (
        "job add --url https://x.example --meta a",
        "NAME=VALUE",
        "job add --url https://x.example --meta NAME=VALUE",
    ),
    ("user add bob", "ann@example.com", "user add bob --email ann@example.com"),
    ("event send 'bad event' --user ann", "letters, digits", "event send bad.event --user ann"),
    # A target that is missing, or one too many.
    ("pause --until PT1H", "--all", "pause --until PT1H --all"),
    ("resume", "--all", "resume --all"),
    ("run retry", "--state", "run retry --state failed"),
    ("action pause", "--owner OWNER", "action pause a"),
    ("action run", "--all", "action run --all"),
    ("action run --all --dry-run", "for one ACTION", "action run a --dry-run"),
    ("action run a --user ann", "without --user", "action run a --dry-run"),
    ("action apply a.json --owner x", "--prune", "action apply a.json --prune --owner x"),
    ("backfill a --to now", "--from is missing", PAST),
    ("backfill a --from now --to P3D", "the earlier one", PAST),
    # A name that nothing has, and one that is taken.
    ("action show A", "did you mean 'a'", "action show a"),
    ("action delete nope", "`minutebook action list`", "action list"),
    ("user show nope", "`minutebook user list`", "user list"),
    ("run cancel abc", "`minutebook run list`", "run list"),
    ("job delete zz", "`minutebook job list`", "job list"),
    ("token revoke zz", "`minutebook token list`", "token list"),
    ("pause --queue nope", "`minutebook queue list`", "queue list"),
    ("template preview nope", "`minutebook template list`", "template list"),
    ("--app nope action list", '"default"', "--app default action list"),
    ("action add a.json", "`minutebook action apply`", "action apply a.json"),
    ("user add ann --email b@example.com", "`minutebook user update`", "user update ann --name A"),
    ("user update ann", "such as email", "user update ann --email b@example.com"),
    ("app add shop", "--restricted", "app add shop --restricted"),
    ("actoin list", "'action'", "action list"),
    ("action list --ownr x", "--owner", "action list --owner x"),
    # Documents.
    ("action check rule.json", "from 0 to 59", "action check c.json"),
    ("action check big.json", "split it", "action check half.json"),
    ("action check top.json", '"operations.celery_task"', "action check c.json"),
    ("action edit a", "--yes", "action edit a --yes"),
]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Path:
    """A folder of documents, with the database of an action, a small app and a user."""
    folder = tmp_path_factory.mktemp("filled")
    for name, document in FILES.items():
        (folder / name).write_text(json.dumps(document))
    shutil.copy(sqlite_template, folder / "minutebook.db")
    home = ("--home", str(folder))
    assert run([*home, "action", "add", str(folder / "a.json")]) == 0
    assert run([*home, "app", "add", "shop"]) == 0
    assert run([*home, "user", "add", "ann", "--email", "ann@example.com"]) == 0
    # Whole, without what SQLite keeps beside it.
    with closing(sqlite3.connect(folder / "minutebook.db")) as connection:
        connection.execute("VACUUM INTO ?", [str(folder / "filled.db")])
    return folder


@pytest.fixture
def made(call: Call, home: Path, filled: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Commands in that folder, on a copy of its database."""
    shutil.copy(filled / "filled.db", home / "minutebook.db")
    monkeypatch.chdir(filled)
    monkeypatch.setenv("EDITOR", "true")
    return call


@pytest.mark.parametrize(("wrong", "advice", "right"), ADVICE, ids=[one[0] for one in ADVICE])
def test_a_command_is_understood_once_its_error_is_heeded(
    made: Call, wrong: str, advice: str, right: str
) -> None:
    refused = made(*shlex.split(wrong))
    heeded = made(*shlex.split(right))

    assert refused.code == 2
    assert advice in refused.err
    assert len(refused.err.splitlines()) == 1
    assert "Value error" not in refused.err
    assert heeded.code == 0
