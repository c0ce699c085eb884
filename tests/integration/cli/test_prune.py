"""`action apply` of a folder, and `--prune`: what the files no longer name is deleted."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.factories import make_document
from tests.integration.cli.conftest import Call

Fill = Callable[..., str]


@pytest.fixture
def fill(tmp_path: Path, write: Callable[..., str]) -> Fill:
    """Write documents into a folder, each into the file of its name; return the folder."""
    folder = tmp_path / "actions"

    def fill(*names: str, **changes: Any) -> str:
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            document = make_document(name=Path(name).name, **changes)
            write(document, str((folder / f"{name}.json").relative_to(tmp_path)))
        return str(folder)

    return fill


def owners(call: Call) -> dict[str, str | None]:
    return {one["name"]: one["owner"] for one in call("action", "list", "--json").json}


def test_a_link_that_is_not_read_deletes_no_action(call: Call, fill: Fill, tmp_path: Path) -> None:
    folder = fill("a", "team/b")
    call("action", "apply", folder, "--prune")
    Path(folder, "team").rename(tmp_path / "elsewhere")
    Path(folder, "team").symlink_to(tmp_path / "elsewhere")

    to_folder = call("action", "apply", folder, "--prune", "--yes")
    Path(folder, "team").unlink()
    Path(folder, "b.json").symlink_to(tmp_path / "gone.json")
    to_nothing = call("action", "apply", folder, "--prune", "--yes")

    assert to_folder.code == to_nothing.code == 2
    assert f"{folder}/team is a link to a folder, which is not read" in to_folder.err
    assert f"{folder}/b.json: cannot be read" in to_nothing.err
    assert set(owners(call)) == {"a", "b"}


@pytest.mark.parametrize(("answer", "left"), [("y", ["a"]), ("n", ["a", "b"])])
def test_on_a_terminal_it_asks(
    call: Call, fill: Fill, on_terminal: Call, answer: str, left: list[str]
) -> None:
    folder = fill("a", "b")
    call("action", "apply", folder, "--prune")
    Path(folder, "b.json").unlink()

    asked = on_terminal(answer, "action", "apply", folder, "--prune")

    assert "would delete b (" in asked.out
    assert "delete 1 action?" in asked.err
    assert list(owners(call)) == left
