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


def test_a_folder_is_read_with_those_below_it(call: Call, fill: Fill, write: Any) -> None:
    folder = fill("a", "team/deep/b")
    for ignored in (".hidden.json", ".git/c.json", "notes.txt"):
        path = Path(folder, ignored)
        path.parent.mkdir(exist_ok=True)
        path.write_text("no document")

    applied = call("action", "apply", folder, write(make_document(name="beside")))

    assert applied.out == "created 3, changed 0, unchanged 0\n"
    assert owners(call) == {"a": None, "b": None, "beside": None}


def test_an_error_names_the_file_of_its_document(call: Call, fill: Fill) -> None:
    fill("a", "c")
    folder = fill("b", when={"cron_rule": "99 * * * *"})
    Path(folder, "d.json").write_text(Path(folder, "a.json").read_text())

    refused = call("action", "apply", folder)

    assert refused.code == 2
    wrong, twice = refused.err.splitlines()
    assert wrong.startswith(f"error: {folder}/b.json: when.cron_rule")
    assert twice.startswith(f"error: {folder}/d.json: name")
    assert f"is already in {folder}/a.json; give each its own name" in twice


def test_an_empty_folder_is_refused(call: Call, tmp_path: Path) -> None:
    refused = call("action", "apply", str(tmp_path / "home"))

    assert refused.code == 2
    assert refused.err == (
        f"error: the folder {tmp_path}/home holds no *.json file; name another one\n"
    )


def test_an_emptied_folder_deletes_what_it_owned(call: Call, fill: Fill, write: Any) -> None:
    call("action", "add", write(make_document(name="by hand")))
    folder = fill("a", "b")
    call("action", "apply", folder, "--prune")
    Path(folder, "b.json").unlink()
    Path(folder, "a.json").rename(Path(folder, ".a.json"))
    Path(folder, "README.md").write_text("no action any more")

    planned = call("action", "apply", folder, "--prune", "--dry-run", "--json").json
    asked = call("action", "apply", folder, "--prune")
    unchanged = owners(call)
    pruned = call("action", "apply", folder, "--prune", "--yes")

    assert {one["name"] for one in planned} == {"a", "b"}
    assert asked.code == 2
    assert "--prune would delete 2 actions (a, b); see --dry-run" in asked.err
    assert set(unchanged) == {"a", "b", "by hand"}
    assert pruned.out == "created 0, changed 0, unchanged 0, deleted 2\n"
    assert owners(call) == {"by hand": None}


@pytest.mark.parametrize("left", [None, "b.yaml", "team/b.jsonl"])
def test_a_folder_that_is_gone_or_of_another_format_deletes_no_action(
    call: Call, fill: Fill, left: str | None
) -> None:
    folder = fill("a", "team/b")
    call("action", "apply", folder, "--prune")
    for file in ("a.json", "team/b.json"):
        Path(folder, file).unlink()
    if left is None:
        Path(folder, "team").rmdir()
        Path(folder).rmdir()
    else:
        Path(folder, left).write_text("name: b")

    refused = call("action", "apply", folder, "--prune", "--yes")

    assert refused.code == 2
    assert ("cannot be read" if left is None else "holds no *.json file") in refused.err
    assert set(owners(call)) == {"a", "b"}


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


def test_what_the_files_no_longer_name_is_deleted(call: Call, fill: Fill, write: Any) -> None:
    call("action", "add", write([make_document(name=name) for name in ("a", "by hand")]))
    call("action", "add", write(make_document(name="imported", owner="beat")))
    folder = fill("a", "b", "c")
    fill("own", owner="team")
    first = call("action", "apply", folder, "--prune")
    for name in ("b", "own"):
        Path(folder, f"{name}.json").unlink()

    before = call("action", "list", "--json").json
    planned = call("action", "apply", folder, "--prune", "--dry-run", "--json").json
    told = call("action", "apply", folder, "--prune", "--dry-run").out
    refused = call("action", "apply", folder, "--prune")
    unchanged = call("action", "list", "--json").json
    pruned = call("action", "apply", folder, "--prune", "--yes")

    assert first.out == "created 3, changed 1, unchanged 0\n"
    (gone,) = [one for one in planned if one["change"] == "deleted"]
    assert gone["name"] == "b"
    assert f"would delete b ({gone['uid']})" in told
    assert refused.code == 2
    assert "--prune would delete 1 action (b); see --dry-run, and write --yes" in refused.err
    assert [(one["uid"], one["revision"]) for one in unchanged] == [
        (one["uid"], one["revision"]) for one in before
    ]
    assert pruned.out == "created 0, changed 0, unchanged 2, deleted 1\n"
    assert owners(call) == {
        "a": "apply", "by hand": None, "c": "apply", "imported": "beat", "own": "team",
    }  # fmt: skip


def test_each_owner_has_a_set_of_its_own(call: Call, fill: Fill) -> None:
    folder = fill("a", "b")
    call("action", "apply", folder, "--prune", "--owner", "shop")
    Path(folder, "b.json").unlink()

    taken = call("action", "apply", folder, "--prune", "--yes")
    pruned = call("action", "apply", folder, "--prune", "--owner", "shop", "--yes", "--json")

    assert taken.code == 2
    assert 'actions of these names have other owners ("a of shop")' in taken.err
    assert [(one["name"], one["change"]) for one in pruned.json] == [
        ("a", "unchanged"), ("b", "deleted"),
    ]  # fmt: skip
    assert "--owner is for --prune" in call("action", "apply", folder, "--owner", "x").err


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
