"""Hints at what a document means: the nearest known names, and the paths of faults."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from itertools import islice

ROOT = "document"
# Names that may be compared for the hints of one document, which may have thousands of wrong ones.
MOST_COMPARED = 2_000
LONGEST_SEGMENT = 60
_left: ContextVar[list[int] | None] = ContextVar("comparisons left", default=None)


@contextmanager
def few_compared() -> Iterator[None]:
    """Bound the names that `nearest` compares within the block: the first wrong ones get a hint."""
    token = _left.set([MOST_COMPARED])
    try:
        yield
    finally:
        _left.reset(token)


def nearest(name: object, known: Iterable[str]) -> str | None:
    """Return the known name nearest to `name`; None if none is near, or too many were compared."""
    by_folded = {one.casefold()[:LONGEST_SEGMENT]: one for one in known}
    left = _left.get() or [len(by_folded)]
    left[0] -= len(by_folded)
    if left[0] < 0:
        return None
    wanted = str(name)[:LONGEST_SEGMENT].casefold()
    begun = [one for one in by_folded if len(wanted) > 2 and one.startswith(wanted)]
    found = begun or get_close_matches(wanted, by_folded, 1)
    return by_folded[found[0]] if found else None


def meant(name: object, known: Iterable[str], otherwise: str = "") -> str:
    """Return the hint `; did you mean "…"?`, or `otherwise` if no known name is near."""
    near = nearest(name, known)
    return f'; did you mean "{near}"?' if near else otherwise


def listed(names: Iterable[str]) -> str:
    """Return at most twelve of the names, in quotes."""
    shown = [f'"{name}"' for name in islice(names, 13)]
    return ", ".join(shown[:12]) + (", …" if len(shown) > 12 else "")


def unknown_name(what: str, name: object, known: Iterable[str], hint: str = "") -> str:
    """Return the remedy for an unknown name: the nearest known one, else all of them and `hint`."""
    names = list(known)
    far = f"; known here: {listed(names)}{hint}" if names else hint or "; remove it"
    return f"is not a known {what}{meant(name, names, far)}"


def path_of(loc: Iterable[int | str]) -> str:
    """Return the path of a fault: `policy.retry.backoff[2]`; `document` for the whole."""
    path = ""
    for part in loc:
        if isinstance(part, int):
            path += f"[{part}]"
        else:
            path += f".{segment(part)}" if path else segment(part)
    return path or ROOT


def segment(key: str) -> str:
    """Return a key for use in a path: short, printable, on one line."""
    shown = "".join(char if char.isprintable() else "�" for char in key) or '""'
    return shown if len(shown) <= LONGEST_SEGMENT else shown[: LONGEST_SEGMENT - 1] + "…"
