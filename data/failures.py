"""Errors of reading a source."""

from models.errors import SchedulerError

CUT_OFF = "the data are cut off, so write the whole file"


class SourceFailed(SchedulerError):
    """A source cannot be read; `permanent`: not before the source or its settings change."""

    def __init__(self, message: str, *, permanent: bool = False) -> None:
        self.permanent = permanent
        super().__init__(message)


class Stopped(Exception):
    """The read was asked to stop; existing data are unchanged."""


def check_size(what: str, size: int, most: int) -> None:
    """Raise SourceFailed for a size above `most` bytes; the error begins with `what`."""
    if size > most:
        raise SourceFailed(f"{what} than SCHED_FETCH_MAX_BYTES={most}", permanent=True)


def first_line(error: object) -> str:
    """Return the first line of an error's text."""
    return str(error).partition("\n")[0]
