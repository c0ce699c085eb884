"""HTTP connections to checked addresses only, immune to a later change of the name."""

import httpx

from runtime.certificates import authorities
from small_apps.fetch.addresses import checked_addresses


class Guard(httpx.BaseTransport):
    """Connects each hop to a checked address, under the requested host name."""

    def __init__(self, *, allow_private: bool, setting: str) -> None:
        self._allow_private = allow_private
        self._setting = setting
        self._inner = httpx.HTTPTransport(verify=authorities())

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request to the first address of its host that accepts it. Raises SourceFailed.

        A host may have an address at which nothing listens, such as `::1` of `localhost`.
        """
        # As it is sent: Python's resolver would read `faß.de` as `fass.de`, another one's domain.
        host = request.url.raw_host.decode("ascii")
        port = request.url.port or (443 if request.url.scheme == "https" else 80)
        *others, last = checked_addresses(
            host, port, allow_private=self._allow_private, setting=self._setting
        )
        for address in others:
            try:
                return self._send_to(address, host, request)
            except httpx.ConnectError:
                continue
        return self._send_to(last, host, request)

    def close(self) -> None:
        """Close the connections."""
        self._inner.close()

    def _send_to(self, address: str, host: str, request: httpx.Request) -> httpx.Response:
        direct = httpx.Request(
            request.method,
            request.url.copy_with(host=address),
            headers=request.headers,
            stream=request.stream,
            extensions=request.extensions | {"sni_hostname": host},
        )
        return self._inner.handle_request(direct)
