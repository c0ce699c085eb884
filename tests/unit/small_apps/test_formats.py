from pathlib import Path
from typing import Any

import pytest

from runtime.clock import monotonic
from small_apps.failures import SourceFailed
from small_apps.formats import format_of, read_rows


def rows_of(tmp_path: Path, text: str | bytes, format_name: str) -> list[dict[str, Any]]:
    """Return the rows that a file with `text` has."""
    file = tmp_path / "source"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return list(read_rows(file, format_name, "source"))


@pytest.mark.parametrize(
    ("format_name", "text"),
    [
        pytest.param("csv", 'id,name\n1,"a, b"\n2,\n', id="csv"),
        pytest.param("csv", '\ufeffid,name\r\n1,"a, b"\r\n\r\n2,\r\n', id="csv_of_a_spreadsheet"),
        pytest.param("json", '[{"id": "1", "name": "a, b"}, {"id": "2", "name": ""}]', id="json"),
        pytest.param("jsonl", '{"id": "1", "name": "a, b"}\n\n{"id": "2", "name": ""}', id="lines"),
    ],
)
def test_rows(tmp_path: Path, format_name: str, text: str) -> None:
    assert rows_of(tmp_path, text, format_name) == [
        {"id": "1", "name": "a, b"},
        {"id": "2", "name": ""},
    ]


@pytest.mark.parametrize(
    ("format_name", "text", "error"),
    [
        pytest.param("csv", "", "source is empty", id="no_header"),
        pytest.param("csv", "id,id\n", "line 1 .*names a column twice", id="column_twice"),
        pytest.param("csv", "id,\n", "line 1 .*column without a name", id="column_without_name"),
        pytest.param("csv", "id,b\n1,2\n3\n", r"line 3 \['3'\]: 1 cells, not 2", id="cell_missing"),
        pytest.param("csv", 'id\n"1', "line 2: unexpected end of data", id="open_quote"),
        pytest.param("csv", b"id\n\xff\n", "byte 0xff is not UTF-8", id="not_utf8"),
        pytest.param("json", "[{]", "line 1, column 3: no JSON", id="broken_json"),
        pytest.param("json", b'["\xff"]', "byte 0xff is not UTF-8", id="json_not_utf8"),
        pytest.param("json", '{"id": 1}', "write a list of objects", id="no_list"),
        pytest.param("json", '[{"id": 1}, 2]', "row 2 2: write an object", id="no_object"),
        pytest.param("json", '[{"id": NaN}]', "NaN is no number of JSON", id="nan"),
        pytest.param("json", "[" * 100_000, "no JSON|nested", id="deep"),
        pytest.param("json", "[" + "9" * 5_000 + "]", "no JSON", id="huge_number"),
        pytest.param("jsonl", '{"id": 1}\n{', "line 2 '{': no JSON", id="broken_line"),
        pytest.param("jsonl", "1", "line 1 1: write an object", id="line_no_object"),
    ],
)
def test_faults_say_where_and_what(
    tmp_path: Path, format_name: str, text: str | bytes, error: str
) -> None:
    with pytest.raises(SourceFailed, match=error) as failed:
        rows_of(tmp_path, text, format_name)

    assert str(failed.value).startswith("source")


@pytest.mark.parametrize(
    ("name", "media_type", "expected"),
    [
        ("a.csv", None, "csv"),
        ("a.JSON", "text/csv", "json"),
        ("a", "application/json; charset=utf-8", "json"),
        ("a.ndjson", None, "jsonl"),
        ("a", None, "csv"),
    ],
)
def test_the_format_is_told_by_name_then_type(
    name: str, media_type: str | None, expected: str
) -> None:
    assert format_of(name, media_type) == expected


def test_a_wide_header_is_read_at_once(tmp_path: Path) -> None:
    began = monotonic()

    assert rows_of(tmp_path, ",".join(f"c{i}" for i in range(50_000)), "csv") == []
    assert monotonic() - began < 60
