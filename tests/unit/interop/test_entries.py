"""What a report says of an entry that no action can express: what is wrong, and what to write."""

import pytest

from interop.entries import CORRECT, Refused
from models.errors import InvalidDocument, Problem


@pytest.mark.parametrize(
    ("value", "remedy", "why", "instead"),
    [
        (
            "PT2S",
            "is shorter than a tick; write more",
            "x 'PT2S' is shorter than a tick",
            "write more",
        ),
        (5, "is not text; write a text", "x 5 is not text", "write a text"),
        ("", "is empty; write a name", "x '' is empty", "write a name"),
        (None, "is missing; add it", "x is missing", "add it"),
        ("a", "is taken", "x 'a' is taken", CORRECT),
        ("a", "write a list", "x 'a' is refused", "write a list"),
        ("a", "give it one", "x 'a' is refused", "give it one"),
        ("a", "use a zone; such as UTC", "x 'a' is refused", "use a zone; such as UTC"),
        ("a", "name a file", "x 'a' is refused", "name a file"),
        ("a", "is old; new; write b", "x 'a' is old", "new; write b"),
    ],
)
def test_the_two_halves_of_a_fault_are_sentences_of_their_own(
    value: object, remedy: str, why: str, instead: str
) -> None:
    refused = Refused.by("it", "file", InvalidDocument([Problem("x", value, remedy)]))

    assert (refused.why, refused.instead) == (why, instead)


def test_several_faults_are_all_named_and_the_same_advice_once() -> None:
    problems = [
        Problem("x", 1, "is no text; write a text"),
        Problem("y", 2, "is no text; write a text"),
    ]

    refused = Refused.by("it", "file", InvalidDocument(problems))

    assert (refused.why, refused.instead) == ("x 1 is no text; y 2 is no text", "write a text")
