"""Addresses that a URL may lead to: public ones, and private ones if the settings allow them."""

import ipaddress
import re
import socket

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
NAT64 = ipaddress.ip_network("64:ff9b::/96")
GLOBAL_V6 = ipaddress.ip_network("2000::/3")
# IANA's special-purpose registries, and the metadata addresses of the large clouds within them.
# Our own list: Python's differs from release to release.
NOT_PUBLIC = tuple(
    map(
        ipaddress.ip_network,
        (
            "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
            "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24",
            "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15",
            "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
            # Azure's host, an address that looks public.
            "168.63.129.16/32",
            "2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
        ),
    )
)  # fmt: skip
FETCHING = "SCHED_FETCH_ALLOW_PRIVATE"
MOST_TRIED = 4
# What may be an address in a text.
_PERHAPS = re.compile(r"[\dA-Fa-f:.]*[:.][\dA-Fa-f:.]*[\dA-Fa-f]")


class NoAddress(Exception):
    """A host has no address that may be used; `permanent`: not before a setting changes."""

    def __init__(self, message: str, *, permanent: bool = False) -> None:
        self.permanent = permanent
        super().__init__(message)


def checked_addresses(
    host: str, port: int, *, allow_private: bool, setting: str = FETCHING
) -> list[str]:
    """Return the addresses of `host` to connect to, the best first; at least one, at most four.

    Every address of the name must be allowed. The caller connects to the returned ones, so that
    a DNS change between check and connection has no effect. Raises NoAddress, which names
    `setting`.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise NoAddress(f"{host} cannot be found: {error}") from None
    addresses = [str(entry[4][0]) for entry in found]
    for address in addresses:
        if not allow_private and not is_public(address):
            raise NoAddress(
                f"{host} leads to a private address; {setting}=true allows that to trusted apps",
                permanent=True,
            )
    return list(dict.fromkeys(addresses))[:MOST_TRIED]


def without_addresses(text: str) -> str:
    """Return the text with `…` for each address: a driver's error says where a name leads."""
    return _PERHAPS.sub(lambda one: "…" if _is_address(one[0]) else one[0], text)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def is_public(text: str) -> bool:
    """Return whether an address is public, and so is the IPv4 address that it stands for."""
    address = ipaddress.ip_address(text.partition("%")[0])
    carried = _carried(address)
    if carried is not None:
        return is_public(str(carried))
    is_in_use = address.version == 4 or address in GLOBAL_V6
    return is_in_use and not any(address in network for network in NOT_PUBLIC)


def _carried(address: Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address that a mapped or a NAT64 address stands for."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    is_nat64 = address in NAT64
    return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF) if is_nat64 else address.ipv4_mapped
