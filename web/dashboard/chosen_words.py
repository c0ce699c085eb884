"""Words of an address that choose among a few: a wrong one is refused, not taken for any."""

from enum import StrEnum
from typing import TypeVar

from models.errors import Refused
from models.problems import listed

Word = TypeVar("Word", bound=StrEnum)


def one_of(kind: type[Word], name: str, text: str) -> tuple[Word, ...]:
    """Return the word that a parameter has, none for an empty one; raises Refused for another."""
    if not text:
        return ()
    if text not in set(kind):
        raise Refused(f"{name} {text!r} is unknown; write one of {listed(map(str, kind))}")
    return (kind(text),)
