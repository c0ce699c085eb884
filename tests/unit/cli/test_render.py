"""The renderer: plain in a pipe, fitting and coloured on a terminal, harmless on both."""

import io
import json
import re
import sys

import pytest

from cli.fitting import GAP, fitted, width_of
from cli.render import Table, document_lines, print_error, print_exactly, print_lines

ROWS = Table(["NAME", "STATE"], [["nightly " + "x" * 200, "failed"], ["b", "success"]])
HOSTILE = "a\x1b[2Jb\x9bc\u202ed\re\x07"


class Screen(io.StringIO):
    """A terminal that remembers what was written to it."""

    def isatty(self) -> bool:
        return True


def on_screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """Put a terminal of 60 columns in the place of this process's streams."""
    made = Screen()
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, made)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm-256color")
    return made


def test_a_table_in_a_pipe_is_plain_aligned_and_whole(capsys: pytest.CaptureFixture[str]) -> None:
    print_lines([ROWS])

    head, first, second = capsys.readouterr().out.splitlines()
    assert first == f"nightly {'x' * 200}  failed"
    assert head.index("STATE") == second.index("success") == first.index("failed")


def test_a_table_on_a_terminal_has_a_line_for_each_row(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = on_screen(monkeypatch)

    print_lines([ROWS])

    plain = re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue()).splitlines()
    assert [len(line) <= 60 for line in plain] == [True] * 3
    assert plain[1].split("  ")[0].endswith("xx…")
    assert "\x1b[31mfailed" in screen.getvalue()


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_there_is_no_colour_where_none_is_wanted(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    screen = on_screen(monkeypatch)
    monkeypatch.setenv(name, value)

    print_lines([ROWS, "  warning: late"])
    print_error("gone")

    assert "\x1b" not in screen.getvalue()
    assert "failed" in screen.getvalue()


def test_there_is_no_colour_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    print_lines([ROWS, "warning: late"])

    assert "\x1b" not in capsys.readouterr().out


def test_control_characters_are_written_out(capsys: pytest.CaptureFixture[str]) -> None:
    print_lines([HOSTILE, Table(["A"], [[HOSTILE]])])
    print_error(HOSTILE)

    out, err = capsys.readouterr()
    written = r"a\x1b[2Jb\x9bc\u202ed\re\x07".replace(r"\r", r"\x0d")
    assert out.splitlines() == [written, "A", written]
    assert err.startswith("error: a\\x1b[2J")
    assert not set("\x1b\x9b\u202e\x07\r") & set(out + err)


def test_what_is_exact_in_a_pipe_is_harmless_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    print_exactly(HOSTILE)
    assert capsys.readouterr().out == HOSTILE

    screen = on_screen(monkeypatch)
    print_exactly(HOSTILE)
    assert not set("\x1b\x9b\u202e\x07\r") & set(screen.getvalue())


def test_a_document_stays_json_and_keeps_its_texts(capsys: pytest.CaptureFixture[str]) -> None:
    document = {"name": HOSTILE, "description": "soft\u00adhyphen, a\u2028line, a \x85"}

    print_lines(document_lines(document))

    assert json.loads(capsys.readouterr().out) == document


def test_control_characters_never_reach_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = on_screen(monkeypatch)

    print_lines(["HOSTILE " + HOSTILE, Table(["A"], [[HOSTILE]])])

    assert not set("\x9b\u202e\x07\r") & set(screen.getvalue())
    assert "\x1b[2J" not in screen.getvalue()


HEADINGS = ["NAME", "HEALTH", "NEXT", "UID"]
ONE = "4e1563e8-5218-4c31-b9af-2e4599cffd21"
LIKE_IT = "4e1563e8-5318-4c31-b9af-2e4599cffd22"
OTHER = "eca2b487-fada-491f-8671-be0b3677347e"
NEXT = "2026-11-26T03:50:00Z"
LONG = "was due and never ran, for no worker listens"


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

    columns = [max(map(width_of, column)) for column in zip(*lines, strict=True)]
    assert sum(columns) + GAP * (len(columns) - 1) <= width
