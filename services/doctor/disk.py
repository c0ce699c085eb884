"""How much of the disk each part of the home folder takes, what bounds it, and what is left."""

import os
import shutil
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from time import monotonic

from pydantic import Field

from runtime.config import Settings
from runtime.plug_ins import plug_ins
from services.doctor.report import Checked, fault, ok, warning
from services.view import View

# Those of the kernel; see `parts`.
PARTS = {
    "minutebook.db": ("database", "SCHED_RETENTION_OPERATIONS_DAYS"),
    "minutebook.db-wal": ("database", "SCHED_RETENTION_OPERATIONS_DAYS"),
    "minutebook.db-shm": ("database", "SCHED_RETENTION_OPERATIONS_DAYS"),
    "broker": ("broker", "the messages that wait"),
    "mail": ("mail", "the oldest messages go"),
}
OTHER = "other"
MOST_FILES = 200_000
# A file system is nearly full when less than 5 % of it is free, and less than 5 GiB.
LEAST_SHARE = 0.05
ENOUGH = 5 * 2**30
# With less, nothing can be written for long.
NO_SPACE = 50 * 2**20
MEASURED_AGAIN_S = 60
MAKE_ROOM = "free some space, keep less history, or move the home folder"


class Disk(View):
    """The disk of the machine that is asked: what the home folder takes, and what is left."""

    taken: dict[str, int] = Field(description="Bytes of each part of the home folder.")
    free: int = Field(description="Bytes that are free on its file system.")
    size: int = Field(description="Bytes of its file system.")
    is_nearly_full: bool = Field(description="Less than 5 % of it is free, and less than 5 GiB.")

    @property
    def total(self) -> int:
        """The bytes of the whole home folder."""
        return sum(self.taken.values())

    @property
    def left_in_words(self) -> str:
        """What is left on the file system."""
        return f"{in_words(self.free)} of {in_words(self.size)} free"


def disk_of(settings: Settings) -> Disk:
    """Return the disk of a home folder, whose files are measured once a minute in a process."""
    return _kept(settings.home, int(monotonic() // MEASURED_AGAIN_S))


@lru_cache(maxsize=4)
def _kept(home: Path, _period: int) -> Disk:
    return measured(home)


def measured(home: Path) -> Disk:
    """Return the disk of a home folder as it is now."""
    size, _, free = shutil.disk_usage(next(one for one in (home, *home.parents) if one.exists()))
    return Disk(
        taken={part: taken for part, taken in sizes_of(home).items() if taken},
        free=free,
        size=size,
        is_nearly_full=is_nearly_full(free, size),
    )


def is_nearly_full(free: int, size: int) -> bool:
    """Return whether so many free bytes, of a file system of that size, call for a warning."""
    return free < min(LEAST_SHARE * size, ENOUGH)


def check_disk(settings: Settings) -> Iterator[Checked]:
    """Yield what the home folder takes, and a warning if its file system is nearly full."""
    disk = disk_of(settings)
    shown = ", ".join(f"{part} {in_words(size)}" for part, size in disk.taken.items())
    yield ok("disk", f"{in_words(disk.total)}{': ' if shown else ''}{shown}; {disk.left_in_words}")
    if disk.is_nearly_full:
        make = fault if disk.free < NO_SPACE else warning
        yield make("disk", nearly_full(disk, settings.home), MAKE_ROOM)


def nearly_full(disk: Disk, home: Path) -> str:
    """Return the finding that the file system of a home folder is nearly full."""
    return f"the file system of {home} is nearly full: {disk.left_in_words}"


def parts() -> dict[str, tuple[str, str]]:
    """Return the parts by their names in the home folder, with what bounds each."""
    return PARTS | {name: (name, bound) for one in plug_ins() for name, bound in one.home.items()}


def sizes_of(home: Path) -> dict[str, int]:
    """Return the bytes of each part of a home folder, of its first 200,000 files."""
    known = parts()
    sizes = {name: 0 for name, _ in known.values()} | {OTHER: 0}
    for count, (top, size) in enumerate(_files(home)):
        if count >= MOST_FILES:
            break
        sizes[known.get(top, (OTHER, ""))[0]] += size
    return sizes


def _files(home: Path) -> Iterator[tuple[str, int]]:
    for folder, _, names in os.walk(home):
        for name in names:
            file = Path(folder, name)
            try:
                # A sparse file takes only the blocks that it uses.
                yield file.relative_to(home).parts[0], file.lstat().st_blocks * 512
            except OSError:  # removed meanwhile
                continue


def in_words(size: int) -> str:
    """Return a size in KiB, or in MiB or GiB from one on."""
    if size < 2**20:
        return f"{size / 2**10:.0f} KiB"
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.1f} MiB"
