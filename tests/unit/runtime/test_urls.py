import pytest

from broker.app import transport_options
from runtime.urls import check_broker_url, host_and_port, split_sentinel


@pytest.mark.parametrize(
    ("url", "plain", "name"),
    [
        pytest.param("sentinel://a:1/0?master_name=m", "sentinel://a:1/0", "m", id="one"),
        pytest.param(
            "sentinel://a:1;sentinel://:pw@b:2/3?master_name=m",
            "sentinel://a:1/3;sentinel://:pw@b:2/3",
            "m",
            id="the_database_goes_to_the_first",
        ),
        pytest.param("redis://a:1/0", "redis://a:1/0", "", id="redis"),
        pytest.param("amqp://a//;amqp://b//", "amqp://a//;amqp://b//", "", id="rabbitmq"),
    ],
)
def test_the_name_of_the_primary_is_split_off(url: str, plain: str, name: str) -> None:
    check_broker_url(url)

    assert split_sentinel(url) == (plain, name)
    assert transport_options(url).get("master_name", "") == name


@pytest.mark.parametrize(
    "url",
    ["sentinel://a:1", "sentinel://a:1/0?master_name=", "sentinel://a:1/x?master_name=m"],
)
def test_a_sentinel_without_a_name_or_with_a_named_database_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="master_name=NAME"):
        check_broker_url(url)


@pytest.mark.parametrize(
    ("host", "text"), [("mail.example.com", "mail.example.com:25"), ("::1", "[::1]:25")]
)
def test_an_ipv6_address_before_a_port_has_brackets(host: str, text: str) -> None:
    assert host_and_port(host, 25) == text
