import pytest

from interop.entries import Refused
from models.errors import InvalidDocument, Problem
from tests.tables import table


@pytest.mark.parametrize(
    ("value", "remedy", "why", "instead"),
    table(__file__, "the_two_halves_of_a_fault_are_sentences_of_their_own"),
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
