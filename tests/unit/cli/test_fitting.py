"""Tables on a terminal: one line for each row, never wider than it."""

import pytest

from cli.fitting import GAP, fitted, width_of

HEADINGS = ["NAME", "HEALTH", "NEXT", "UID"]
ONE = "4e1563e8-5218-4c31-b9af-2e4599cffd21"
LIKE_IT = "4e1563e8-5318-4c31-b9af-2e4599cffd22"
OTHER = "eca2b487-fada-491f-8671-be0b3677347e"
NEXT = "2026-11-26T03:50:00Z"
LONG = "was due and never ran, for no worker listens"


def widths(lines: list[list[str]]) -> int:
    columns = [max(map(width_of, column)) for column in zip(*lines, strict=True)]
    return sum(columns) + GAP * (len(columns) - 1)


def test_what_fits_is_left_as_it_is() -> None:
    lines = [HEADINGS, ["a", "is well", NEXT, ONE]]

    assert fitted(lines, 80, 2026) == lines


@pytest.mark.parametrize(
    ("width", "row"),
    [
        pytest.param(90, ["nightly", LONG, NEXT, "4e1563e8"], id="ids_first"),
        pytest.param(80, ["nightly", LONG, "11-26 03:50Z", "4e1563e8"], id="then_instants"),
        pytest.param(60, ["nightly", f"{LONG[:26]}…", "11-26 03:50Z", "4e1563e8"], id="then_texts"),
    ],
)
def test_a_terminal_that_is_narrower_gets_less(width: int, row: list[str]) -> None:
    assert fitted([HEADINGS, ["nightly", LONG, NEXT, ONE]], width, 2026)[1] == row


def test_another_year_is_shown() -> None:
    found = fitted([HEADINGS, ["nightly", LONG, "2027-01-01T00:00:00Z", ONE]], 80, 2026)

    assert found[1][2] == "2027-01-01 00:00Z"


def test_ids_stay_as_long_as_they_have_to_be_told_apart() -> None:
    rows = [["a", LONG, "-", ONE], ["b", LONG, "-", LIKE_IT], ["c", LONG, "-", OTHER]]

    ids = [line[3] for line in fitted([HEADINGS, *rows], 70, 2026)[1:]]

    assert len(set(ids)) == 3
    assert ONE.startswith(ids[0].rstrip("…"))


@pytest.mark.parametrize("width", [20, 40, 60, 79, 80, 120])
@pytest.mark.parametrize("text", [LONG * 3, "日本語の長い名前" * 9, "é" * 90])
def test_no_line_is_wider_than_the_terminal(width: int, text: str) -> None:
    lines = fitted([HEADINGS, [text, text, NEXT, ONE]], width, 2026)

    assert widths(lines) <= width
