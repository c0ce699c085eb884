"""Fuzzed sources: a format on the first line, then the bytes of a file."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.hostile.bounds import read_in_bounds
from tests.hostile.corpus import corpus

FORMATS = ("csv", "json", "jsonl", "parquet")
SMALL = 8_000


def seeds() -> list[bytes]:
    """Return the small files of the hostile corpus, each after its format."""
    made = ((one.format, one.made()) for one in corpus() if not one.is_heavy)
    return [f"{format}\n".encode() + data for format, data in made if len(data) <= SMALL]


@contextmanager
def opened() -> Iterator[Callable[[bytes], None]]:
    """Yield the check of sources, whose children work in a folder of its own."""
    with TemporaryDirectory() as folder:

        def check(given: bytes) -> None:
            first, _, data = given.partition(b"\n")
            format = first.decode("utf-8", "replace")
            # Only these come from a document that was saved.
            known = format if format in FORMATS else FORMATS[len(first) % len(FORMATS)]
            error = read_in_bounds(known, known, lambda: data, Path(folder))
            assert "Traceback" not in error, error
            assert " failed: " not in error, error

        yield check
