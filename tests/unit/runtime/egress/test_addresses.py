import pytest

from runtime.egress.addresses import NoAddress, checked_addresses, is_public
from runtime.egress.deadline import Deadline
from runtime.egress.guard import guarded_client


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0",
        "100.64.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "::", "::1", "fe80::1%eth0",
        "fc00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1",
        "2002:7f00:1::", "2001:db8::1", "192.0.0.192", "192.0.0.8", "168.63.129.16",
        "100.100.100.200", "fd00:ec2::254", "fd20:ce::254", "fec0::1", "3fff::1", "5f00::1",
        "2001::1", "2002:808:808::1", "64:ff9b:1::1", "64:ff9b::c000:c0", "::ffff:168.63.129.16",
        "::8.8.8.8", "100::1", "198.18.0.1", "192.88.99.1",
    ],
)  # fmt: skip
def test_private_addresses(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "2606:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8"]
)
def test_public_addresses(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f.1", "::1"])
def test_other_spellings_of_this_machine_are_refused(host: str) -> None:
    with pytest.raises(NoAddress):
        checked_addresses(host, 80, allow_private=False)


def test_an_unknown_host_is_reported() -> None:
    with pytest.raises(NoAddress, match=r"^nowhere\.invalid cannot be found") as failed:
        checked_addresses("nowhere.invalid", 80, allow_private=False)

    assert not failed.value.permanent


def test_a_name_is_looked_up_as_it_is_sent() -> None:
    with (
        Deadline(5) as deadline,
        guarded_client(deadline, allow_private=True, setting="IT") as client,
        pytest.raises(NoAddress, match=r"^xn--fa-hia\.invalid cannot be found"),
    ):
        client.get("http://faß.invalid/")
