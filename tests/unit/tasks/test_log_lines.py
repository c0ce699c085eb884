import logging

import pytest

from tasks.log_lines import LogLines
from tasks.progress import LineHandler

ONE, TWO = {"message": "one"}, {"message": "two"}


def test_lines_are_written_once_while_none_comes() -> None:
    lines = LogLines()
    lines.append(ONE)
    with lines.being_written(waits=False) as first:
        pass
    with lines.being_written(waits=False) as second:
        pass

    assert (first, second) == ([ONE], None)
    assert lines.all() == [ONE]


def test_what_comes_while_others_are_written_is_written_next() -> None:
    lines = LogLines()
    lines.append(ONE)
    with lines.being_written(waits=False) as first:
        lines.append(TWO)
        with lines.being_written(waits=False) as meanwhile:
            pass
    with lines.being_written(waits=False) as second:
        pass

    assert (first, meanwhile, second) == ([ONE], None, [ONE, TWO])


def test_lines_stay_new_if_they_cannot_be_written() -> None:
    lines = LogLines()
    lines.append(ONE)

    with pytest.raises(OSError, match="away"), lines.being_written(waits=True):
        raise OSError("away")

    assert lines.has_new


def kept(*records: tuple[object, ...]) -> list[str]:
    """Return the messages that are kept of records: each a format and its values."""
    lines = LogLines()
    handler = LineHandler(lines)
    for format, *values in records:
        handler.handle(logging.makeLogRecord({"msg": format, "args": tuple(values)}))
    return [one["message"] for one in lines.all() or ()]


def test_a_record_that_cannot_be_written_does_not_fail_its_step(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert kept(("%d rows", "no number"), ("done",)) == ["done"]
    assert "Logging error" in capsys.readouterr().err


def test_a_very_long_line_is_cut_off() -> None:
    assert kept(("x" * 1_000_000,)) == ["x" * 10_000 + "…"]
