"""Addresses that a URL may lead to: public ones, and private ones if the settings allow them."""

import ipaddress
import socket

from small_apps.failures import SourceFailed

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
NAT64 = ipaddress.ip_network("64:ff9b::/96")
FETCHING = "SCHED_FETCH_ALLOW_PRIVATE"


def checked_address(host: str, port: int, *, allow_private: bool, setting: str = FETCHING) -> str:
    """Return the address of `host` to connect to. Raises SourceFailed, which names `setting`.

    Every address of the name must be allowed. The caller connects to the returned one, so that
    a DNS change between check and connection has no effect.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise SourceFailed(f"{host} cannot be found: {error}") from None
    addresses = [str(entry[4][0]) for entry in found]
    for address in addresses:
        if not allow_private and not is_public(address):
            raise SourceFailed(
                f"{host} leads to the private address {address}; {setting}=true allows it",
                permanent=True,
            )
    return addresses[0]


def is_public(text: str) -> bool:
    """Return whether an address, and each one that it tunnels to, is a public one."""
    address = ipaddress.ip_address(text.partition("%")[0])
    carried = _carried(address)
    # NAT64 addresses are reserved, but stand for public IPv4 addresses where NAT64 is in use.
    own = [] if address in NAT64 else [address]
    return all(_is_global(one) for one in (*own, *carried))


def _is_global(address: Address) -> bool:
    return address.is_global and not (
        address.is_multicast or address.is_reserved or address.is_unspecified
    )


def _carried(address: Address) -> list[Address]:
    """Return the IPv4 addresses embedded in an IPv6 address."""
    if isinstance(address, ipaddress.IPv4Address):
        return []
    carried: list[Address | None] = [address.ipv4_mapped, address.sixtofour]
    carried += address.teredo or ()
    if address in NAT64:
        carried.append(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
    return [one for one in carried if one is not None]
