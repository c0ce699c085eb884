"""HTTP connections to checked addresses only, immune to a later change of the name."""

import httpx

from runtime.certificates import authorities
from small_apps.fetch.addresses import checked_address


class Guard(httpx.BaseTransport):
    """Connects each hop to a checked address, under the requested host name."""

    def __init__(self, *, allow_private: bool, setting: str) -> None:
        self._allow_private = allow_private
        self._setting = setting
        self._inner = httpx.HTTPTransport(verify=authorities())

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request to a checked address of its host. Raises SourceFailed."""
        url = request.url
        port = url.port or (443 if url.scheme == "https" else 80)
        address = checked_address(
            url.host, port, allow_private=self._allow_private, setting=self._setting
        )
        direct = httpx.Request(
            request.method,
            url.copy_with(host=address),
            headers=request.headers,
            stream=request.stream,
            extensions=request.extensions | {"sni_hostname": url.host},
        )
        return self._inner.handle_request(direct)

    def close(self) -> None:
        """Close the connections."""
        self._inner.close()
