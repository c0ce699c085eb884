"""The folder of mails that no server gets: bounded, the oldest go first."""

import os
from email.message import EmailMessage
from pathlib import Path

import pytest

from runtime.config import load_settings
from tasks.outgoing.mail import transport
from tasks.outgoing.mail.transport import FolderTransport, open_transport


def message(number: int) -> EmailMessage:
    made = EmailMessage()
    made["Message-ID"] = f"<{number}@example.com>"
    made["From"], made["To"], made["Subject"] = "a@example.com", "b@example.com", "much"
    return made


def names(folder: Path) -> set[str]:
    return {one.name for one in folder.iterdir()}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(transport, "MOST_IN_FOLDER", 2)
    return tmp_path / "mail"


def send(tmp_path: Path, *messages: EmailMessage) -> None:
    with open_transport(load_settings(tmp_path, {})) as opened:
        for one in messages:
            opened.send(one)


def test_the_oldest_messages_go_also_unfinished_ones(tmp_path: Path, folder: Path) -> None:
    send(tmp_path, message(1), message(2))
    for number, name in enumerate(("notes.txt", "0@example.com.part", "2@example.com.eml")):
        (folder / name).touch()
        os.utime(folder / name, (number, number))

    send(tmp_path, message(3))

    assert names(folder) == {"1@example.com.eml", "3@example.com.eml", "notes.txt"}


def test_a_folder_that_is_not_there_is_left_alone(folder: Path) -> None:
    FolderTransport(folder).remove_oldest()

    assert not folder.exists()
