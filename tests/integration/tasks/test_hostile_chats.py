"""A chat's server that answers without end, too slowly or from elsewhere, and texts that lie."""

import socket
import threading
from pathlib import Path

import psutil
import pytest
from pydantic import SecretStr

from runtime.clock import monotonic
from runtime.config import Settings
from tasks.notices.channel import send
from tasks.outgoing.failures import Undelivered
from tasks.outgoing.mail.message import Content
from tests.hostile.raw_server import Speaks, raw_server
from tests.receiver import receiver

MESSAGE = Content("a title", "a text")
MOST_MIB = 50
TOO_LONG = (
    "^channel ops takes longer than SCHED_HOOK_TIMEOUT_S=1; "
    "check its service, or raise SCHED_HOOK_TIMEOUT_S$"
)
HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path)


def named(settings: Settings, url: str, *, timeout_s: float = 20, private: bool = True) -> Settings:
    """Return settings with the channel `ops` at an address of this machine."""
    more = {"allow_private": private, "timeout_s": timeout_s}
    hook = settings.hook.model_copy(update=more)
    notify = {"ops": SecretStr(url.replace("http://", "json://"))}
    return settings.model_copy(update={"notify": notify, "hook": hook})


def endless(first: bytes, rest: bytes, wait_s: float = 0) -> Speaks:
    """Return what sends `first`, then `rest` without end."""

    def speaks(connection: socket.socket, over: threading.Event) -> None:
        connection.recv(9_999)
        connection.sendall(first)
        while not over.wait(wait_s):
            connection.sendall(rest)

    return speaks


def memory_mib() -> float:
    """Return what this process and all its children take."""
    its = psutil.Process()
    return sum(one.memory_info().rss for one in (its, *its.children(recursive=True))) / (1 << 20)


def test_an_answer_without_end_is_read_in_part(settings: Settings) -> None:
    send_ok(settings)
    before = memory_mib()

    with raw_server(endless(HEAD + b"\r\n", b"x" * (1 << 20))) as port:
        tell(named(settings, f"http://127.0.0.1:{port}"))

    assert memory_mib() - before < MOST_MIB


def tell(settings: Settings) -> None:
    """Send the message to the channel of the settings."""
    send("ops", MESSAGE, "minutebook-1", settings, is_good=True)


def send_ok(settings: Settings) -> None:
    """Send a message to a chat that takes it: the server of the children has started then."""
    with receiver() as chat:
        tell(named(settings, chat.url))
        assert len(chat.got) == 1


@pytest.mark.parametrize(
    "rest", [pytest.param(b"x" * (1 << 16), id="one"), pytest.param(b"X: y\r\n" * 999, id="many")]
)
def test_headers_without_end_are_no_delivery(settings: Settings, rest: bytes) -> None:
    with raw_server(endless(HEAD + b"X: ", rest)) as port, pytest.raises(Undelivered):
        tell(named(settings, f"http://127.0.0.1:{port}"))


def test_the_child_of_an_answer_that_drips_is_killed_at_the_deadline(settings: Settings) -> None:
    send_ok(settings)
    children = len(psutil.Process().children(recursive=True))
    began = monotonic()

    with (
        raw_server(endless(HEAD + b"\r\n", b"x", 0.05)) as port,
        pytest.raises(Undelivered, match=TOO_LONG),
    ):
        tell(named(settings, f"http://127.0.0.1:{port}", timeout_s=1))

    assert monotonic() - began < 10
    assert len(psutil.Process().children(recursive=True)) == children


@pytest.mark.parametrize("status", [301, 308])
def test_a_redirect_is_no_delivery_and_is_not_followed(settings: Settings, status: int) -> None:
    with receiver() as chat, receiver() as elsewhere:
        chat.answers, chat.headers = [status], {"Location": elsewhere.url}
        with pytest.raises(Undelivered, match=f"answered {status}, a redirect"):
            tell(named(settings, chat.url))

    assert (len(chat.got), elsewhere.got) == (1, [])


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_a_private_address_needs_the_setting(settings: Settings, name: str) -> None:
    with receiver() as chat:
        its = named(settings, chat.url.replace("127.0.0.1", name), private=False)
        with pytest.raises(Undelivered, match="SCHED_HOOK_ALLOW_PRIVATE=true allows that"):
            tell(its)

    assert chat.got == []


def test_no_proxy_of_the_environment_gets_a_message(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiver() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        with receiver() as chat:
            tell(named(settings, chat.url))

    assert (len(chat.got), proxy.got) == (1, [])


def test_what_a_text_holds_mentions_nobody_and_hides_no_link(settings: Settings) -> None:
    text = (
        "@everyone @here <!channel> <!here|x> <@U024BE7LH> <#C024BE7LH> <at>a</at>"
        " [all is well](http://evil.example) <http://evil.example|all is well>"
    )
    content = Content(text, f"error {text}")

    with receiver() as chat:
        send("ops", content, "minutebook-1", named(settings, chat.url), is_good=False)

    (got,) = chat.got
    said = got.body.decode()
    assert not [
        mark for mark in ("@e", "@h", "@U", "<!", "<@", "<#", "<a", "<h", "](") if mark in said
    ]
    assert "\\u200b" in said
