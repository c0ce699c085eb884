"""`action edit`: a document in an editor, which is a program of each test."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.factories import make_document
from tests.integration.cli.conftest import Call, Write

Editing = Callable[[str], Path]
HOURLY = {"cron_rule": "0 * * * *", "timezone": "UTC"}
MINUTEBOOK = str(Path(sys.executable).with_name("minutebook"))
CHANGE_RULE = "text.replace('0 * * * *', '5 * * * *')"


@pytest.fixture
def editing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Editing:
    """Make an expression over `text` and `turn` the editor; return the file of what it saw."""
    seen = tmp_path / "seen"
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)

    def make(expression: str) -> Path:
        program = tmp_path / "editor.py"
        program.write_text(
            "import json, os, pathlib, subprocess, sys\n"
            f"file, seen = pathlib.Path(sys.argv[1]), pathlib.Path({str(seen)!r})\n"
            "text = file.read_text()\n"
            "turn = seen.read_text().count('=====') if seen.exists() else 0\n"
            "with seen.open('a') as log: log.write(text + '=====\\n')\n"
            f"file.write_text({expression})\n"
        )
        monkeypatch.setenv("VISUAL", f"{sys.executable} {program}")
        return seen

    return make


@pytest.fixture
def hourly(call: Call, write: Write) -> str:
    """The name of a stored action."""
    made = call("action", "add", write(make_document(name="nightly", when=HOURLY)))
    assert made.code == 0, made.err
    return "nightly"


def kept(err: str) -> str:
    """Return the text of the draft whose place an error names."""
    found = re.search(r"your draft is kept in (\S+)", err)
    assert found, err
    return Path(found[1]).read_text()


def drafts(tmp_path: Path) -> list[Path]:
    return list(tmp_path.glob("nightly-*.json"))


def test_an_edit_is_shown_and_stored(
    call: Call, hourly: str, editing: Editing, tmp_path: Path
) -> None:
    editing(CHANGE_RULE)

    edited = call("action", "edit", hourly, "--yes")

    assert edited.code == 0, edited.err
    assert edited.out.startswith(f"would change {hourly}")
    assert "revision 2" in edited.out.splitlines()[-1]
    document = call("action", "show", hourly, "--json").json["document"]
    assert document["when"] == {**HOURLY, "cron_rule": "5 * * * *"}
    assert drafts(tmp_path) == []


def test_an_edit_may_rename(call: Call, hourly: str, editing: Editing) -> None:
    uid = call("action", "show", hourly, "--json").json["uid"]
    editing("text.replace('nightly', 'by night')")

    edited = call("action", "edit", hourly, "--yes", "--json")

    told = {key: edited.json[key] for key in ("uid", "name", "old_name", "change", "revision")}
    assert told == {
        "uid": uid, "name": "by night", "old_name": "nightly", "change": "changed", "revision": 2,
    }  # fmt: skip


def test_a_document_left_as_it_was_changes_nothing(
    call: Call, hourly: str, editing: Editing, tmp_path: Path
) -> None:
    editing("text")

    left = call("action", "edit", hourly, "--yes")

    assert (left.code, left.out) == (0, "nightly is as it was, enabled\n")
    assert drafts(tmp_path) == []


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        pytest.param("text[:-9]", "line ", id="no_json"),
        pytest.param("text.replace('0 * * * *', '99 * * * *')", "99", id="wrong_rule"),
        pytest.param("text.replace('nightly', 'maintenance')", "another action", id="taken_name"),
    ],
)
def test_what_cannot_be_stored_is_kept(
    call: Call, hourly: str, editing: Editing, write: Write, expression: str, told: str
) -> None:
    call("action", "add", write(make_document(name="maintenance", when=HOURLY)))
    seen = editing(expression)

    refused = call("action", "edit", hourly, "--yes")

    assert refused.code == 2
    assert told in refused.err
    before = seen.read_text().removesuffix("=====\n")
    assert kept(refused.err) == eval(expression, {"text": before})


def test_a_change_that_came_first_is_not_overwritten(
    call: Call, hourly: str, editing: Editing, write: Write, home: Path
) -> None:
    other = write(make_document(name=hourly, when={**HOURLY, "cron_rule": "7 * * * *"}))
    apply = [MINUTEBOOK, "--home", str(home), "action", "apply", other]
    editing(f"(subprocess.run({apply}, check=True), {CHANGE_RULE})[1]")

    refused = call("action", "edit", hourly, "--yes")

    assert refused.code == 2
    assert "is at revision 2, not 1: another change came first" in refused.err
    assert json.loads(kept(refused.err))["when"]["cron_rule"] == "5 * * * *"
    shown = call("action", "show", hourly, "--json").json
    assert (shown["revision"], shown["document"]["when"]["cron_rule"]) == (2, "7 * * * *")


@pytest.mark.parametrize(
    ("editor", "told"),
    [
        ("/nowhere/vi", "'/nowhere/vi' cannot be started: No such file or directory; set VISUAL"),
        ("false", "'false' ended with exit code 1"),
        ("'", "cannot be started: No closing quotation"),
    ],
)
def test_an_editor_that_fails_changes_nothing(
    call: Call, hourly: str, monkeypatch: pytest.MonkeyPatch, editor: str, told: str
) -> None:
    monkeypatch.setenv("VISUAL", editor)

    refused = call("action", "edit", hourly, "--yes")

    assert refused.code == 2
    assert told in refused.err
    assert "kept" not in refused.err


def test_without_a_terminal_it_is_refused_before_the_editor_starts(
    call: Call, hourly: str, editing: Editing
) -> None:
    seen = editing("text")

    refused = call("action", "edit", hourly)

    assert (refused.code, seen.exists()) == (2, False)
    assert "write --yes" in refused.err


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1)])
def test_on_a_terminal_a_faulty_document_comes_back_with_its_faults(
    hourly: str, editing: Editing, on_terminal: Call, answer: str, code: int
) -> None:
    seen = editing("text.replace('0 * *', '99 * *') if turn == 0 else text.replace('99', '5')")

    asked = on_terminal(answer, "action", "edit", hourly)

    first, second, _ = seen.read_text().split("=====\n")
    comments = [line for line in second.splitlines() if line.startswith("#")]
    assert comments[0].startswith("# nothing was stored; correct this and save")
    assert any("when.cron_rule" in line and "99" in line for line in comments)
    assert not first.startswith("#")
    assert asked.code == code
    assert "would change nightly" in asked.out
    assert ("revision 2" in asked.out.splitlines()[-1]) is (answer == "y")
    if answer == "n":
        assert json.loads(kept(asked.err))["when"]["cron_rule"] == "5 * * * *"
