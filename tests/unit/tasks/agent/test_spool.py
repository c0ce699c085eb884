"""The ends that an agent keeps on its disk."""

import os
from pathlib import Path

import pytest

from tasks.agent import spool as spools
from tasks.agent.spool import Spool

END = {"id": "1dd03b83", "attempt": 1, "delivery": "one", "report": {"outcome": "success"}}


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "home")


def keys(spool: Spool) -> list[str]:
    return [key for key, _ in spool.kept()]


def test_what_one_agent_keeps_another_one_finds(spool: Spool) -> None:
    assert spool.keep("1-1", END)

    ((key, kept),) = Spool(spool.folder.parent).kept()

    assert key == "1-1"
    assert END.items() <= kept.items()


def test_the_oldest_comes_first_and_what_is_forgotten_is_gone(spool: Spool) -> None:
    for age, key in enumerate(["newest", "middle", "oldest"]):
        spool.keep(key, END)
        os.utime(spool.folder / f"{key}.json", (1e9 - age, 1e9 - age))

    spool.forget("middle")
    spool.forget("never kept")

    assert keys(spool) == ["oldest", "newest"]
    assert [key for key, _ in spool.kept(but={"oldest"})] == ["newest"]


def test_an_end_that_is_kept_is_for_this_account_alone(spool: Spool) -> None:
    before = os.umask(0)
    try:
        spool.keep("1-1", END)
    finally:
        os.umask(before)

    assert spool.folder.stat().st_mode & 0o777 == 0o700
    assert (spool.folder / "1-1.json").stat().st_mode & 0o777 == 0o600


def test_what_is_too_large_or_too_much_is_not_kept_and_leaves_nothing(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not spool.keep("large", {**END, "error": "x" * spools.MOST_BYTES})
    monkeypatch.setattr(spools, "MOST_KEPT", 1)

    assert spool.keep("first", END)
    assert not spool.keep("second", END)
    assert sorted(os.listdir(spool.folder)) == ["first.json"]


def test_a_disk_that_takes_nothing_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("no folder")

    assert not Spool(tmp_path / "home").keep("1-1", END)
    assert Spool(tmp_path / "home").oldest_s() is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"id":'], ids=["empty", "torn", "list", "cut"])
def test_a_file_that_is_unreadable_keeps_no_other_from_being_read(spool: Spool, text: str) -> None:
    spool.keep("1-1", END)
    (spool.folder / "broken.json").write_text(text)

    assert keys(spool) == ["1-1"]


def test_a_write_that_was_cut_off_is_no_end(spool: Spool) -> None:
    spool.keep("1-1", END)
    (spool.folder / "2-1.0badc0de").write_text('{"id":')

    assert keys(spool) == ["1-1"]
