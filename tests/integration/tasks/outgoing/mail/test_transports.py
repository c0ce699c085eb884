"""SMTP against a real server, and the folder of the mails that no server gets."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path

import pytest

from runtime.config import load_settings
from tasks.outgoing.failures import MailRefused, MailServerFailed
from tasks.outgoing.mail import smtp as module
from tasks.outgoing.mail import transport
from tasks.outgoing.mail.message import Content, Envelope, build_message
from tasks.outgoing.mail.smtp import SmtpTransport
from tasks.outgoing.mail.transport import FolderTransport, open_transport
from tests.certificate import make_certificate, tls_of_server
from tests.mail_server import MailServer, mail_server

NOW = datetime(2026, 11, 23, 6, 0, tzinfo=UTC)
Sends = Callable[..., None]


def message_to(who: str, text: str = "Hello") -> EmailMessage:
    address = who if "@" in who else f"{who}@example.com"
    return build_message(
        Content("Hello", text), Envelope("mb@example.com", address, None, "<1.send@x.org>", NOW)
    )


@contextmanager
def sending(server: MailServer, timeout_s: float = 20) -> Iterator[Sends]:
    """Yield a function that sends to recipients, one after the other."""
    with closing(SmtpTransport(server.url, timeout_s)) as transport:

        def send(*who: str, text: str = "Hello") -> None:
            for one in who:
                transport.send(message_to(one, text))

        yield send


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.mark.parametrize(
    ("changes", "most", "count", "sessions"),
    [
        pytest.param({}, None, 20, 1, id="one_for_many"),
        pytest.param({"MESSAGES_PER_CONNECTION": 10}, None, 25, 3, id="worn"),
        pytest.param({"LONGEST_SILENCE_S": 0}, None, 2, 2, id="idle"),
        pytest.param({}, 2, 5, 3, id="the_server_has_had_enough"),
    ],
)
def test_a_connection_carries_messages_until_it_is_worn_or_refused(
    smtp: MailServer,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, int],
    most: int | None,
    count: int,
    sessions: int,
) -> None:
    for name, value in changes.items():
        monkeypatch.setattr(module, name, value)
    smtp.most_in_session = most

    with sending(smtp) as send:
        send(*(f"u{n}" for n in range(count)))

    assert smtp.recipients == [f"u{n}@example.com" for n in range(count)]
    assert smtp.sessions == sessions


@pytest.mark.parametrize(
    ("answer", "is_permanent"),
    [
        ("550 nobody here", True), ("451 later", False), ("421 not now", False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("where", ["answers", "data_answers"])
def test_what_an_answer_means(
    smtp: MailServer, answer: str, is_permanent: bool, where: str
) -> None:
    getattr(smtp, where)["ann"] = answer

    with sending(smtp) as send:
        with pytest.raises(MailRefused, match=answer) as refused:
            send("ann")
        assert smtp.sessions == 1
        send("ben")

    assert refused.value.permanent is is_permanent
    # A server that hangs up once it has the text may yet have kept it.
    assert refused.value.uncertain is (answer.startswith("421") and where == "data_answers")
    assert smtp.recipients == ["ben@example.com"]


@pytest.mark.parametrize(
    "how", ["drops_within", "drops", "takes_and_drops", "hangs", "hangs_at_rcpt"]
)
def test_what_breaks_within_a_message_is_not_sent_again_at_once(smtp: MailServer, how: str) -> None:
    getattr(smtp, how).add("ann")

    with sending(smtp, timeout_s=2 if "hangs" in how else 20) as send:
        send("eve")
        with pytest.raises(MailRefused, match="the server may have accepted") as refused:
            send("ann")
        send("ben")

    assert refused.value.uncertain
    assert not refused.value.permanent
    taken = ["ann@example.com"] if how == "takes_and_drops" else []
    assert smtp.recipients == ["eve@example.com", *taken, "ben@example.com"]


def test_a_password_that_smtp_cannot_send_is_not_shown() -> None:
    with mail_server("mb", "right") as server:
        server.url = server.url.replace("right", "geh%C3%A4im")
        with sending(server) as send, pytest.raises(MailServerFailed) as failed:
            send("ann")

    assert failed.value.permanent
    assert str(failed.value) == "127.0.0.1: write the user and the password in ASCII characters"


def test_a_message_larger_than_the_server_takes_is_not_begun() -> None:
    with mail_server(data_size_limit=2_000) as server, sending(server) as send:
        with pytest.raises(MailRefused, match="552 Error: message size") as refused:
            send("ann", text="word " * 1_000)
        send("ben")

        assert refused.value.permanent
        assert server.recipients == ["ben@example.com"]


def test_an_address_beyond_ascii_needs_a_server_that_takes_it() -> None:
    with mail_server(enable_SMTPUTF8=True) as server, sending(server) as send:
        send("chloé@example.com")

        assert server.recipients == ["chloé@example.com"]
    with (
        mail_server(enable_SMTPUTF8=False) as server,
        sending(server) as send,
        pytest.raises(MailRefused, match="SMTPUTF8"),
    ):
        send("chloé@example.com")


def test_a_domain_beyond_ascii_is_sent_in_ascii(smtp: MailServer) -> None:
    with sending(smtp) as send:
        send("ann@bücher.example.com")

    assert smtp.recipients == ["ann@xn--bcher-kva.example.com"]


@pytest.mark.parametrize("scheme", ["smtps", "smtp+starttls"])
def test_mail_goes_by_tls_to_a_server_whose_certificate_is_trusted(
    scheme: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls = tls_of_server(certificate)
    with mail_server("mb", "right", scheme=scheme, tls=tls) as server:
        untrusted = pytest.raises(MailServerFailed, match=r"(?i)certificate.verify.failed")
        with sending(server) as send, untrusted:
            send("ann")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        with sending(server) as send:
            send("ben")

        assert server.recipients == ["ben@example.com"]


def test_a_server_without_starttls_gets_no_password() -> None:
    with mail_server("mb", "right") as server:
        server.url = server.url.replace("smtp:", "smtp+starttls:")
        with sending(server) as send, pytest.raises(MailServerFailed, match="STARTTLS") as failed:
            send("ann")

    assert failed.value.permanent


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
