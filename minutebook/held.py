"""What a worker runs, in memory that the processes of its pool share with their parent."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import suppress
from ctypes import Structure, c_bool, c_char, c_double, c_uint8, c_uint32, sizeof
from time import monotonic

from minutebook.lease import CANCELLED, LOST

# What the renewal of a lease may be answered.
ANSWERS = (None, CANCELLED, LOST)
# After so many heartbeats, a third of a lease, a task whose lease was not renewed does it itself.
# The lease of one that has not looked for so long is not renewed: it stands still.
SILENT = 1.5


class Place(Structure):
    """What a process runs: an attempt's lease, and when Celery kills it.

    `renewed_at` is when the lease was renewed last, `looked_at` when the attempt last read what
    that was answered. Instants are by the machine's monotonic clock, the same in all processes.
    """

    _fields_ = (
        ("pid", c_uint32), ("is_running", c_bool), ("lease", c_char * 200), ("killed_at", c_double),
        ("heartbeat_s", c_double), ("looked_at", c_double), ("renewed_at", c_double),
        ("answer", c_uint8),
    )  # fmt: skip


class Held:
    """A place for each attempt that the processes of a worker run.

    The free places lie in a pipe: to read a number is to take a place. The parent puts it back.
    """

    PLACES = 1_024

    def __init__(self) -> None:
        memory = mmap.mmap(-1, self.PLACES * sizeof(Place))
        self._places: list[Place] = [*(Place * self.PLACES).from_buffer(memory)]
        self._free, self._give = os.pipe()
        os.set_blocking(self._free, False)
        os.write(self._give, b"".join(one.to_bytes(2, "little") for one in range(self.PLACES)))

    def close(self) -> None:
        """Give no place from now on; what runs may end."""
        os.close(self._free)
        os.close(self._give)
        self._free = -1

    def note(self, lease: str, heartbeat_s: float, killed_at: float) -> Place | None:
        """Note what this process runs; return its place, None if none is free."""
        try:
            place = self._places[int.from_bytes(os.read(self._free, 2), "little")]
        except OSError:
            return None
        place.lease, place.heartbeat_s, place.killed_at = lease.encode(), heartbeat_s, killed_at
        place.looked_at = place.renewed_at = monotonic()
        place.is_running = True
        # Last: what has a process and does not run is over.
        place.pid = os.getpid()
        return place

    def running(self) -> list[Place]:
        """Return the places of what runs, and does not stand still."""
        some = [one for one in self._places if one.is_running]
        return [one for one in some if monotonic() < one.looked_at + SILENT * one.heartbeat_s]

    def of_killed(self) -> Iterator[tuple[str, float]]:
        """Yield what processes ran that are gone; places at which nothing runs are free again."""
        for number, one in enumerate(self._places):
            if one.pid and not (one.is_running and _is_alive(one.pid)):
                if one.is_running:
                    yield one.lease.decode(), one.killed_at
                one.is_running, one.pid = False, 0
                os.write(self._give, number.to_bytes(2, "little"))


def _is_alive(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False
