import pytest

from tasks.log_lines import LogLines

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
