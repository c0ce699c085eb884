"""HTTP connections to checked addresses only, immune to a later change of the name."""

import ssl
from functools import cache, partial

import httpx

from runtime.egress.addresses import checked_addresses
from runtime.egress.deadline import Deadline


@cache
def authorities() -> ssl.SSLContext:
    """Return the known authorities, read once per process, because reading them takes 25 ms."""
    return httpx.create_ssl_context()


def guarded_client(deadline: Deadline, *, allow_private: bool, setting: str) -> httpx.Client:
    """Return a client for requests that end with the deadline; it follows no redirect.

    `setting` is the one that sets `allow_private`, for errors.
    """
    return httpx.Client(
        transport=Guard(deadline, allow_private=allow_private, setting=setting),
        timeout=deadline.seconds,
        follow_redirects=False,
        # A proxy of the environment would bypass the check of the address.
        trust_env=False,
    )


class Guard(httpx.BaseTransport):
    """Connects each hop to a checked address, under the requested host name."""

    def __init__(self, deadline: Deadline, *, allow_private: bool, setting: str) -> None:
        self._deadline = deadline
        self._allow_private = allow_private
        self._setting = setting
        self._inner = httpx.HTTPTransport(verify=authorities())

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request to the first address of its host that accepts it. Raises NoAddress.

        A host may have an address at which nothing listens, such as `::1` of `localhost`, or which
        does not respond: each gets an equal share of the time that is left to connect.
        """
        # As it is sent: Python's resolver would read `faß.de` as `fass.de`, another one's domain.
        host = request.url.raw_host.decode("ascii")
        port = request.url.port or (443 if request.url.scheme == "https" else 80)
        checked = partial(checked_addresses, allow_private=self._allow_private)
        found = self._deadline.within(partial(checked, host, port, setting=self._setting))
        *others, last = found
        for number, address in enumerate(others):
            within_s = self._deadline.left_s / (len(found) - number)
            try:
                return self._send_to(address, host, request, within_s)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                if self._deadline.is_over:
                    raise
        return self._send_to(last, host, request, self._deadline.left_s)

    def close(self) -> None:
        """Close the connections."""
        self._inner.close()

    def _send_to(
        self, address: str, host: str, request: httpx.Request, within_s: float
    ) -> httpx.Response:
        timeout = request.extensions["timeout"] | {"connect": within_s}
        own = {"sni_hostname": host, "timeout": timeout, "trace": self._deadline.trace}
        direct = httpx.Request(
            request.method,
            request.url.copy_with(host=address),
            headers=request.headers,
            stream=request.stream,
            extensions=request.extensions | own,
        )
        return self._inner.handle_request(direct)
