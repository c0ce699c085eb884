"""The addresses that the HTTP door listens on, and those of its proxies."""

from collections.abc import Callable

import httpx
import pytest

from models.errors import Refused
from processes.listening import listening
from runtime.config import Settings
from tests.integration.web.conftest import Serve
from tests.servers import free_port


def test_a_proxy_that_comes_by_ipv4_is_known_where_all_addresses_are_served(
    home_of: Callable[[str], Settings], serve: Serve
) -> None:
    settings = home_of("sqlite")
    behind = settings.web.model_copy(update={"host": "::", "proxies": ("127.0.0.1",)})
    web = serve(settings.model_copy(update={"web": behind}))
    said = {"X-Forwarded-Proto": "https", "Sec-Fetch-Site": "same-origin"}

    answer = httpx.post(f"{web.url}/sign-in", data={"token": web.token()}, headers=said)

    assert answer.headers["set-cookie"].endswith("; Secure")


@pytest.mark.parametrize(
    ("host", "remedy"),
    [
        pytest.param("192.0.2.1", "set SCHED_WEB_HOST", id="of_another_machine"),
        pytest.param("127.0.0.1", "set SCHED_WEB_PORT to a free port", id="taken"),
        pytest.param("127.0.0..1", "set SCHED_WEB_HOST", id="of_an_empty_label"),
    ],
)
def test_an_address_that_cannot_be_served_is_refused_with_what_to_set(
    host: str, remedy: str
) -> None:
    port = free_port()
    with listening("127.0.0.1", port), pytest.raises(Refused, match=remedy):
        listening(host, port)


@pytest.mark.parametrize(("host", "own"), [("localhost", "127.0.0.1"), ("::1", "::1")])
def test_a_name_means_its_ipv4_address_and_an_address_itself(host: str, own: str) -> None:
    with listening(host, 0) as made:
        assert made.getsockname()[0] == own
