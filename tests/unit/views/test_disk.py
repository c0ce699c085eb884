"""What the home folder takes: each part by its name, and a warning for what nothing bounds."""

import re
from pathlib import Path

import pytest

from runtime.config import load_settings
from views.doctor import disk

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "cli.md"
FILES = {"minutehand.db": 8192, "mail/1.eml": 4096, "mail/2.eml": 4096, "config.yaml": 1}


def test_each_part_has_its_size(tmp_path: Path) -> None:
    for name, size in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * size)

    sizes = disk.sizes_of(tmp_path)
    assert (sizes["database"], sizes["mail"]) == (8192, 8192)
    assert sizes["other"] > 0
    assert sizes["snapshots"] == 0


def test_much_mail_is_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "MUCH", 4095)
    (tmp_path / "mail").mkdir()
    (tmp_path / "mail" / "1.eml").write_bytes(b"x" * 4096)

    found = list(disk.check_disk(load_settings(tmp_path, {})))
    assert [one.level for one in found] == ["ok", "warning"]


def test_a_home_folder_that_does_not_exist_takes_nothing(tmp_path: Path) -> None:
    (found,) = disk.check_disk(load_settings(tmp_path / "none", {}))
    assert found.text == "0.0 MiB"


def test_the_page_names_each_part_with_its_bound() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| `?([\w ]+)", text, re.M))

    for part, bound in disk.PARTS.values():
        assert rows[part].strip() == bound
