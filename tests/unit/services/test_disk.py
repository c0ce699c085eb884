import re
from pathlib import Path

import pytest

from runtime.config import load_settings
from services.doctor import disk
from tests.docs.pages import text_of

GIB = 2**30
FILES = {"minutebook.db": 8192, "mail/1.eml": 4096, "mail/2.eml": 4096, "config.yaml": 1}


def test_each_part_has_its_size(tmp_path: Path) -> None:
    for name, size in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * size)

    sizes = disk.sizes_of(tmp_path)
    assert (sizes["database"], sizes["mail"]) == (8192, 8192)
    assert sizes["other"] > 0
    assert sizes["snapshots"] == 0


@pytest.mark.parametrize(("size", "shown"), [(0, "0 KiB"), (2**20, "1.0 MiB"), (GIB, "1.0 GiB")])
def test_a_size_has_a_unit_that_suits_it(size: int, shown: str) -> None:
    assert disk.in_words(size) == shown


@pytest.mark.parametrize(
    ("free", "size", "expected"),
    [
        pytest.param(5 * GIB, 100 * GIB, False, id="5 %"),
        pytest.param(5 * GIB - 1, 100 * GIB, True, id="less than 5 %"),
        pytest.param(5 * GIB - 1, 10_000 * GIB, True, id="less than 5 GiB of a large one"),
        pytest.param(GIB, 2 * GIB, False, id="half of a small one"),
    ],
)
def test_a_file_system_is_nearly_full(free: int, size: int, expected: bool) -> None:
    assert disk.is_nearly_full(free, size) is expected


def test_a_nearly_full_disk_is_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load_settings(tmp_path, {})
    monkeypatch.setattr(disk, "is_nearly_full", lambda free, size: free < size)

    found = list(disk.check_disk(settings))
    assert [one.level for one in found] == ["ok", "warning"]
    assert f"the file system of {tmp_path} is nearly full" in found[1].text


def test_a_home_folder_that_does_not_exist_takes_nothing(tmp_path: Path) -> None:
    found = disk.disk_of(load_settings(tmp_path / "none" / "yet", {}))

    assert (found.taken, found.total) == ({}, 0)
    assert 0 < found.free <= found.size


def test_the_page_names_each_part_with_its_bound() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| `?([\w ]+)", text_of("reference/cli/status"), re.M))

    for part, bound in disk.parts().values():
        assert rows[part].strip() == bound
