"""How much of the disk each part of the home folder takes, and what bounds it."""

import os
from collections.abc import Iterator
from pathlib import Path

from runtime.config import Settings
from views.doctor.report import Finding, ok, warning

# The parts by their names in the home folder, with what bounds each.
PARTS = {
    "minutehand.db": ("database", "SCHED_RETENTION_OPERATIONS_DAYS"),
    "minutehand.db-wal": ("database", "SCHED_RETENTION_OPERATIONS_DAYS"),
    "minutehand.db-shm": ("database", "SCHED_RETENTION_OPERATIONS_DAYS"),
    "snapshots": ("snapshots", "SCHED_RETENTION_SNAPSHOTS"),
    "downloads": ("downloads", "one file a domain"),
    "scratch": ("scratch", "the next import of the domain"),
    "broker": ("broker", "the messages that wait"),
    "mail": ("mail", "nothing"),
    "data": ("data", "nothing"),
}
OTHER = "other"
# Of what nothing bounds, so much is worth a look.
MUCH = 2**30
MOST_FILES = 200_000


def check_disk(settings: Settings) -> Iterator[Finding]:
    """Yield what the home folder takes, and a warning for what grows without a bound."""
    sizes = sizes_of(settings.home)
    shown = ", ".join(f"{part} {in_words(size)}" for part, size in sizes.items() if size)
    yield ok("disk", f"{in_words(sum(sizes.values()))}{': ' if shown else ''}{shown}")
    if sizes["mail"] > MUCH:
        folder = settings.home / "mail"
        text = f"{folder} has {in_words(sizes['mail'])}, and nothing bounds it"
        yield warning("disk", text, "delete old messages, or send mail by SCHED_SMTP_URL")


def sizes_of(home: Path) -> dict[str, int]:
    """Return the bytes of each part of a home folder, of its first 200,000 files."""
    sizes = {name: 0 for name, _ in PARTS.values()} | {OTHER: 0}
    for count, (top, size) in enumerate(_files(home)):
        if count >= MOST_FILES:
            break
        sizes[PARTS.get(top, (OTHER, ""))[0]] += size
    return sizes


def _files(home: Path) -> Iterator[tuple[str, int]]:
    for folder, _, names in os.walk(home):
        for name in names:
            file = Path(folder, name)
            try:
                # What a sparse file does not use is free.
                yield file.relative_to(home).parts[0], file.lstat().st_blocks * 512
            except OSError:  # it went meanwhile
                continue


def in_words(size: int) -> str:
    """Return a size in MiB."""
    return f"{size / 2**20:.1f} MiB"
