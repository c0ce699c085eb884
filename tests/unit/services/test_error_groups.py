from time import process_time

import pytest

from services.overview.errors import alike


@pytest.mark.parametrize(
    ("error", "text"),
    [
        ("no printer in room 7", "no printer in room …"),
        ("  host-7: 12 of /tmp/a1/b", "… … of …"),
        ("no such host", "no such host"),
        ("KeyError('user_7')", "KeyError('user_7')"),
    ],
)
def test_words_with_a_digit_are_left_out_if_others_are_left(error: str, text: str) -> None:
    assert alike(error) == text


def test_an_error_of_one_long_word_is_read_once() -> None:
    began = process_time()
    alike("x" * 20_000)

    assert process_time() - began < 0.5
