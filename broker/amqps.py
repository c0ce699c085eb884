"""RabbitMQ over TLS. kombu verifies the certificate's signature, and this module the name in it."""

from typing import Any

from kombu.transport.pyamqp import SSLTransport


class NamedServer(SSLTransport):
    """The transport of `amqps://`: the certificate has to be that of the URL's host."""

    client: Any

    def establish_connection(self) -> Any:
        """Connect to the host whose turn it is, if the URL names several."""
        host = self.client.hostname
        options = self.client.ssl if isinstance(self.client.ssl, dict) else {}
        self.client.ssl = {**options, "server_hostname": host}
        try:
            return super().establish_connection()
        finally:
            # kombu replaces `localhost` by an address, which the next connection would check.
            self.client.hostname = host
