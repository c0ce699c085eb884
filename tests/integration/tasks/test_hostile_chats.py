"""A chat's server that answers without end, too slowly or from elsewhere, and texts that lie."""

import psutil
import pytest

from runtime.clock import monotonic
from tasks.outgoing.failures import Undelivered
from tests.hostile.raw_server import endless, raw_server
from tests.integration.tasks.crew import Tell
from tests.receiver import Receiver, receiver

MOST_MIB = 50
TOO_LONG = (
    "^channel ops takes longer than SCHED_HOOK_TIMEOUT_S=1; "
    "check its service, or raise SCHED_HOOK_TIMEOUT_S$"
)
HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.fixture
def started(tell: Tell, web: Receiver) -> None:
    """The server of the children has started."""
    tell(web.url)
    assert len(web.got) == 1


def memory_mib() -> float:
    its = psutil.Process()
    return sum(one.memory_info().rss for one in (its, *its.children(recursive=True))) / (1 << 20)


@pytest.mark.usefixtures("started")
def test_an_answer_without_end_is_read_in_part(tell: Tell) -> None:
    before = memory_mib()

    with raw_server(endless(HEAD + b"\r\n", b"x" * (1 << 20))) as port:
        tell(f"http://127.0.0.1:{port}")

    assert memory_mib() - before < MOST_MIB


@pytest.mark.parametrize(
    "rest", [pytest.param(b"x" * (1 << 16), id="one"), pytest.param(b"X: y\r\n" * 999, id="many")]
)
def test_headers_without_end_are_no_delivery(tell: Tell, rest: bytes) -> None:
    with raw_server(endless(HEAD + b"X: ", rest)) as port, pytest.raises(Undelivered):
        tell(f"http://127.0.0.1:{port}")


@pytest.mark.usefixtures("started")
def test_the_child_of_an_answer_that_drips_is_killed_at_the_deadline(tell: Tell) -> None:
    children = len(psutil.Process().children(recursive=True))
    began = monotonic()

    slow = raw_server(endless(HEAD + b"\r\n", b"x", 0.05))
    with slow as port, pytest.raises(Undelivered, match=TOO_LONG):
        tell(f"http://127.0.0.1:{port}", timeout_s=1)

    assert monotonic() - began < 10
    assert len(psutil.Process().children(recursive=True)) == children


@pytest.mark.parametrize("status", [301, 308])
def test_a_redirect_is_no_delivery_and_is_not_followed(
    tell: Tell, web: Receiver, status: int
) -> None:
    with receiver() as elsewhere:
        web.answers, web.headers = [status], {"Location": elsewhere.url}
        with pytest.raises(Undelivered, match=f"answered {status}, a redirect"):
            tell(web.url)

    assert (len(web.got), elsewhere.got) == (1, [])


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_a_private_address_needs_the_setting(tell: Tell, web: Receiver, name: str) -> None:
    with pytest.raises(Undelivered, match="SCHED_HOOK_ALLOW_PRIVATE=true allows that"):
        tell(web.url.replace("127.0.0.1", name), allow_private=False)

    assert web.got == []


def test_no_proxy_of_the_environment_gets_a_message(
    tell: Tell, web: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiver() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        tell(web.url)

    assert (len(web.got), proxy.got) == (1, [])


def test_what_a_text_holds_mentions_nobody_and_hides_no_link(tell: Tell, web: Receiver) -> None:
    text = (
        "@everyone @here <!channel> <!here|x> <@U024BE7LH> <#C024BE7LH> <at>a</at>"
        " [all is well](http://evil.example) <http://evil.example|all is well>"
    )

    tell(web.url, text, f"error {text}")

    (got,) = web.got
    said = got.body.decode()
    marks = ("@e", "@h", "@U", "<!", "<@", "<#", "<a", "<h", "](")
    assert not [mark for mark in marks if mark in said]
    assert "\\u200b" in said
