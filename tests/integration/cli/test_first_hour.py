"""What eases the first hour: the version, completion, and short ids."""

import re
from pathlib import Path

import pytest
import sqlalchemy as sa

from cli.main import run
from runtime.config import load_settings
from tests.factories import make_action, make_operation
from tests.integration.cli.conftest import Call
from tests.unit.models.action.minimal import NOW


def test_commands_are_completed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_MINUTEBOOK_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "minutebook run ca")
    monkeypatch.setenv("COMP_CWORD", "2")

    with pytest.raises(SystemExit):
        run([])

    assert capsys.readouterr().out.split() == ["cancel"]


def test_an_operation_is_found_by_the_beginning_of_its_id(call: Call, stored: sa.Engine) -> None:
    id = make_operation(stored, make_action(stored), NOW)

    for short in (str(id)[:4], str(id)[:13], id.hex[:20].upper()):
        assert call("run", "show", short, "--json").json["id"] == str(id)
    assert call("run", "cancel", str(id)[:8]).code == 0
    assert "no run's id begins with" in call("run", "show", "ffff").err
    assert "'abc' is not a run's id" in call("run", "show", "abc").err


def optional(file: str) -> str:
    """Return a file of `init` with all of its options switched on."""
    return re.sub(r"^#(?=[a-z_]+:)", "", Path(file).read_text(), flags=re.M)


@pytest.fixture
def begun(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which `init` was called, without any installation."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCHED_HOME", "new home")
    made = call("init")
    assert (made.code, made.err) == (0, "")
    assert made.out.splitlines()[:2] == [
        "wrote hello.yaml",
        f"wrote {tmp_path / 'new home' / 'config.yaml'}",
    ]
    return tmp_path


def test_what_init_writes_is_accepted(begun: Path, call: Call) -> None:
    checked = call("action", "check", "hello.yaml", "--json")
    applied = call("action", "apply", "hello.yaml", "--json")
    Path("hello.yaml").write_text(optional("hello.yaml"))
    whole = call("action", "apply", "hello.yaml", "--json")

    assert [one["warnings"] for one in checked.json] == [[]]
    assert applied.json[0]["change"] == "created"
    assert whole.json[0]["change"] == "changed", whole.err
    document = call("action", "show", "hello", "--json").json["document"]
    assert {"active", "policy", "hooks"} <= document.keys()


def test_the_settings_of_init_are_those_of_the_program(begun: Path) -> None:
    folder = begun / "new home"
    plain = load_settings(folder, {})
    (folder / "config.yaml").write_text(optional(str(folder / "config.yaml")))

    changed = load_settings(folder, {})

    assert plain == load_settings(folder.parent, {}).model_copy(update={"home": plain.home})
    assert changed.worker.quick == 4
    assert changed.celery.tasks == ("shop.tasks.*",)


def test_init_overwrites_nothing(begun: Path, call: Call) -> None:
    Path("hello.yaml").write_text("mine")

    again = call("init", "--json")

    assert [one["is_new"] for one in again.json] == [False, False]
    assert Path("hello.yaml").read_text() == "mine"
