"""Mutation of kept inputs: bytes and tokens are cut, replaced, repeated and mixed."""

import re
from collections.abc import Sequence
from enum import Enum, auto

from hypothesis import strategies as st

LONGEST = 20_000
# A text in quotes, a word or number, or one character of punctuation.
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\w.+-]+|[^\w\s]', re.DOTALL)


class How(Enum):
    INSERT = auto()
    REPLACE = auto()
    REPEAT = auto()
    TOKEN = auto()
    DROP_TOKEN = auto()


Edit = tuple[How, int, int, bytes]


def mutated(seeds: Sequence[bytes], words: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Return a strategy of inputs that differ from one of `seeds` by a few edits."""
    piece = st.one_of(
        st.sampled_from(words),
        st.sampled_from(seeds).map(lambda seed: seed[:200]),
        st.binary(max_size=6),
        st.text(max_size=4).map(lambda text: text.encode("utf-8", "surrogatepass")),
    )
    edit = st.tuples(st.sampled_from(How), st.integers(0, LONGEST), st.integers(0, 30), piece)
    return st.tuples(st.sampled_from(seeds), st.lists(edit, max_size=6)).map(_edited)


def _edited(given: tuple[bytes, list[Edit]]) -> bytes:
    made, edits = given
    for edit in edits:
        made = _once(made, edit)[:LONGEST]
    return made


def _once(text: bytes, edit: Edit) -> bytes:
    how, place, length, piece = edit
    start, end = place % (len(text) + 1), min(place % (len(text) + 1) + length, len(text))
    if how in (How.TOKEN, How.DROP_TOKEN):
        found = [one.span() for one in _TOKEN.finditer(text)]
        start, end = found[place % len(found)] if found else (start, start)
        piece = piece if how is How.TOKEN else b""
    elif how is How.INSERT:
        end = start
    elif how is How.REPEAT:
        piece = text[start:end] * (2 + place % 40)
    return text[:start] + piece + text[end:]
