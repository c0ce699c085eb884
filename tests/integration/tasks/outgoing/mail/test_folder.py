"""The folder of mails that no server gets: bounded, the oldest go first."""

import os
from email.message import EmailMessage
from pathlib import Path

import pytest

from runtime.config import load_settings
from tasks.outgoing.mail import transport
from tasks.outgoing.mail.transport import FolderTransport, open_transport

MIB = 2**20


def message(number: int, size: int = 400_000) -> EmailMessage:
    made = EmailMessage()
    made["Message-ID"] = f"<{number}@example.com>"
    made["From"], made["To"], made["Subject"] = "a@example.com", "b@example.com", "much"
    made.set_content("\n".join(["x" * 70] * (size // 71)))
    return made


def age(folder: Path, *names: str) -> None:
    """Make files as old as their places in `names`, the first the oldest."""
    for number, name in enumerate(names):
        os.utime(folder / name, (number, number))


def names(folder: Path) -> set[str]:
    return {one.name for one in folder.iterdir()}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(transport, "MOST_IN_FOLDER", MIB)
    return tmp_path / "mail"


def send(tmp_path: Path, *messages: EmailMessage) -> None:
    with open_transport(load_settings(tmp_path, {})) as opened:
        for one in messages:
            opened.send(one)


def test_the_oldest_messages_go(tmp_path: Path, folder: Path) -> None:
    send(tmp_path, message(1), message(2))
    age(folder, "2@example.com.eml", "1@example.com.eml")

    send(tmp_path, message(3, 1_000))

    assert names(folder) == {"1@example.com.eml", "2@example.com.eml", "3@example.com.eml"}
    send(tmp_path, message(4))
    assert "2@example.com.eml" not in names(folder)
    assert "4@example.com.eml" in names(folder)
    assert sum(one.stat().st_size for one in folder.iterdir()) <= MIB


def test_the_newest_stays_whatever_its_size(tmp_path: Path, folder: Path) -> None:
    send(tmp_path, message(1), message(2, 3 * MIB))

    assert names(folder) == {"2@example.com.eml"}


def test_what_a_killed_process_left_unfinished_goes_and_other_files_stay(
    tmp_path: Path, folder: Path
) -> None:
    folder.mkdir()
    for name in ("1@example.com.part", "notes.txt"):
        (folder / name).write_bytes(b"x" * MIB)
    age(folder, "1@example.com.part", "notes.txt")

    send(tmp_path, message(2))

    assert names(folder) == {"2@example.com.eml", "notes.txt"}


def test_a_folder_that_is_not_there_is_left_alone(folder: Path) -> None:
    FolderTransport(folder).remove_oldest()

    assert not folder.exists()
