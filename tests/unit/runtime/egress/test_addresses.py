import pytest

from runtime.egress.addresses import NoAddress, checked_addresses, is_public
from runtime.egress.deadline import Deadline
from runtime.egress.guard import guarded_client
from tests.tables import table


@pytest.mark.parametrize("address", table(__file__, "private_addresses"))
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
