"""Errors of reading a source."""

from tasks.bounded.limits import InputFailed, Stopped

__all__ = ["CUT_OFF", "SourceFailed", "Stopped", "check_size", "first_line"]

CUT_OFF = "the data are cut off, so write the whole file"
# A source is the input of the child that reads it.
SourceFailed = InputFailed


def check_size(what: str, size: int, most: int) -> None:
    """Raise SourceFailed for a size above `most` bytes; the error begins with `what`."""
    if size > most:
        raise SourceFailed(f"{what} than SCHED_FETCH_MAX_BYTES={most}", permanent=True)


def first_line(error: object) -> str:
    """Return the first line of an error's text."""
    return str(error).partition("\n")[0]
