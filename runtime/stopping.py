"""An event that the handler of a signal may set.

`threading.Event` has a lock. If the signal comes while its own thread holds that lock, as at the
begin and the end of each wait, the handler waits for it for ever, and the process neither goes on
nor ends.
"""

import os
import select
from contextlib import suppress


class Stop:
    """Whether to stop: set once, by any thread or handler of a signal."""

    def __init__(self) -> None:
        self._is_set = False
        # Readable once it is set: a wait that is about to begin does not miss it.
        self._reader, self._writer = os.pipe()

    def set(self) -> None:
        """Ask to stop; ends all waits."""
        if not self._is_set:
            self._is_set = True
            with suppress(OSError):
                os.write(self._writer, b"x")

    def is_set(self) -> bool:
        """Return whether it was asked to stop."""
        return self._is_set

    def wait(self, timeout_s: float | None = None) -> bool:
        """Return whether it was asked to stop, once it was, or after the time-out."""
        if not self._is_set:
            poll = select.poll()
            poll.register(self._reader, select.POLLIN)
            poll.poll(None if timeout_s is None else max(0.0, timeout_s) * 1000)
        return self._is_set

    def __del__(self) -> None:
        with suppress(OSError, AttributeError):
            os.close(self._reader)
            os.close(self._writer)
