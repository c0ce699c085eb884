from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest

from data import snapshots
from data.importing import Data
from data.settings import Settings
from data.snapshots import Place, Written
from tasks.bounded.limits import Watch

ID = UUID(int=7)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home")


def files(home: Path) -> list[str]:
    return [str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()]


def write(settings: Settings, app: str = "demo", domain: str = "a") -> Written:
    file = settings.home.parent / "source"
    file.write_text("id\n1\n")
    return snapshots.write(settings, Place(app, domain, ID), Data(file, "csv", "source"), Watch())


@pytest.mark.parametrize(
    "name", ["..", ".", "a/b", "a\\b", "../../etc", "x" * 200, "é" * 100, "\0", ".hidden"]
)
def test_no_name_leaves_its_folder(settings: Settings, name: str) -> None:
    written = write(settings, app=name, domain=name)

    folder = (settings.home / written.path).resolve().parents[2]
    assert folder == (settings.home / "snapshots").resolve()


def test_names_that_differ_have_folders_that_differ() -> None:
    names = ["a.b", "a%2Eb", "a b", "a_b", "x" * 150, "x" * 151]

    assert len({snapshots.folder_name(name) for name in names}) == len(names)


def test_what_no_domain_needs_goes_when_it_is_old(settings: Settings) -> None:
    left = [
        settings.home / name
        for name in (
            "scratch/demo/x/spill/1.tmp",
            "downloads/demo/a.1.7.part",
            "downloads/demo/b.1",
        )
    ]
    kept = settings.home / "downloads/demo/a.1"
    for file in (*left, kept):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    now = datetime.fromtimestamp(left[0].parent.stat().st_mtime, UTC)

    late = now + 2 * snapshots.ORPHAN_AGE

    assert snapshots.remove_leftovers(settings.home, "demo", ["a"], now) == 0
    assert snapshots.remove_leftovers(settings.home, "demo", ["a"], late) == 3
    assert files(settings.home) == ["downloads/demo/a.1"]


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("", id="empty"),
        pytest.param("snapshots", id="all"),
        pytest.param("snapshots/demo/../..", id="above"),
        pytest.param("snapshots/demo/../../kept.parquet", id="beside"),
        pytest.param("{home}/kept.parquet", id="absolute"),
        pytest.param("kept.parquet", id="not_of_an_app"),
        pytest.param("snapshots/demo/" + "x" * 9_000 + ".parquet", id="too_long"),
        pytest.param("snapshots/demo/\ud800\0.parquet", id="no_text"),
    ],
)
def test_a_path_that_no_snapshot_has_removes_nothing(settings: Settings, path: str) -> None:
    """A hand or an upgrade may have written it into a row that maintenance prunes."""
    written = write(settings)
    (settings.home / "kept.parquet").touch()
    path = path.format(home=settings.home)

    assert not snapshots.is_there(settings, path, 0)
    assert snapshots.remove(settings, [path]) == 0
    assert sorted(files(settings.home)) == ["kept.parquet", written.path]
