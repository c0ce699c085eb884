import socket
import threading

import httpx
import pytest

from runtime.egress.deadline import Deadline
from runtime.egress.guard import guarded_client


def test_a_cut_ends_a_handshake_that_the_server_leaves_unanswered() -> None:
    """The plain socket is TLS's by then: closing it would close nothing."""
    deadline = Deadline(60)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def cut_at_the_handshake() -> None:
            connection, _ = server.accept()
            with connection:
                # The client's hello is there: its handshake has begun.
                assert connection.recv(1)
                deadline.cut()
                ended.wait(10)

        ended = threading.Event()
        thread = threading.Thread(target=cut_at_the_handshake)
        thread.start()
        url = f"https://127.0.0.1:{server.getsockname()[1]}/"
        with (
            deadline,
            guarded_client(deadline, allow_private=True, setting="IT") as client,
            pytest.raises(httpx.HTTPError),
        ):
            client.get(url)
        is_in_time = thread.is_alive()
        ended.set()
        thread.join()

    assert is_in_time
