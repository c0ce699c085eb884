"""Imports of source files: rows, kinds, figures, and rows left out."""

import gzip
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from data.failures import SourceFailed
from tests.hostile.corpus import by_zstd
from tests.unit.data.conftest import Importing

Packed = Callable[[bytes], bytes]
NOON = datetime(2026, 11, 23, 12)  # noqa: DTZ001 - a wall clock


@pytest.mark.parametrize(
    ("format_name", "text"),
    [
        pytest.param("csv", 'id,name\n1,"a, b"\n2,\n', id="csv"),
        pytest.param("csv", '\ufeffid,name\r\n1,"a, b"\r\n\r\n2,\r\n', id="csv_of_a_spreadsheet"),
        pytest.param("csv", 'id,name\r\n1,"a, b"\n2,', id="mixed_ends_of_lines"),
        pytest.param("json", '[{"id": 1, "name": "a, b"}, {"id": 2, "name": ""}]', id="json"),
        pytest.param("jsonl", '{"id": 1, "name": "a, b"}\n\n{"id": 2, "name": ""}', id="lines"),
    ],
)
@pytest.mark.parametrize("packed", [bytes, gzip.compress])
def test_rows(imported: Importing, format_name: str, text: str, packed: Packed) -> None:
    content = packed(text.encode())

    assert imported(content, format_name) == [{"id": 1, "name": "a, b"}, {"id": 2, "name": ""}]


@pytest.mark.parametrize(
    ("format_name", "text"),
    [
        pytest.param("csv", '\ufeffid,name\r\n1,"a\r\n\nb"\r\n\r\n2,\r\n', id="csv"),
        pytest.param(
            "json", '\ufeff[{"id": 1, "name": "a\\r\\n\\nb"}, {"id": 2, "name": ""}]', id="json"
        ),
        pytest.param(
            "jsonl", '{"id": 1, "name": "a\\r\\n\\nb"}\n\n{"id": 2, "name": ""}', id="lines"
        ),
    ],
)
def test_rows_of_zstd(imported: Importing, format_name: str, text: str) -> None:
    rows = imported(by_zstd(text.encode()), format_name)

    assert rows == [{"id": 1, "name": "a\r\n\nb"}, {"id": 2, "name": ""}]


@pytest.mark.parametrize(
    ("format_name", "content", "error"),
    [
        pytest.param("csv", b"id\n1\n\xff\n", "source is not UTF-8", id="csv_not_utf8"),
        pytest.param("jsonl", b'{"id": 1}\n\n{\n', "line 3 '{': is not JSON", id="broken_line"),
        pytest.param("csv", b"id\n1\n\nx\n", "line 4, column id 'x': is not a valid", id="type"),
        pytest.param("csv", b"id,n\r\n1,2\n3,4", "not CSV", id="mixed_ends"),
        pytest.param("json", b'[{"id": 1}', "not JSON, a list", id="open_list"),
        pytest.param("parquet", b"PAR1", "Parquet within zstd; write Parquet", id="parquet"),
    ],
)
def test_errors_in_zstd(imported: Importing, format_name: str, content: bytes, error: str) -> None:
    with pytest.raises(SourceFailed, match=error):
        imported(by_zstd(content), format_name, columns={"id": "integer"})


def test_zstd_has_frames_one_after_another(imported: Importing) -> None:
    skipped = b"\x50\x2a\x4d\x18\x02\0\0\0ab"

    rows = imported(skipped + by_zstd(b"id\n1\n") + skipped + by_zstd(b"2\n"))

    assert rows == [{"id": 1}, {"id": 2}]


@pytest.mark.parametrize(
    ("frame", "error"),
    [
        pytest.param("a0 00e1f505 010000", "may unpack to more than .*=1000000", id="named"),
        pytest.param("00 58" + " 020010 61" * 7 + "030010 61", "may unpack to more", id="repeated"),
        pytest.param("00 58 070000", "not valid zstd before byte 9", id="kind"),
    ],
)
def test_frames_are_checked_before_they_are_read(
    importing: Callable[..., Importing], frame: str, error: str
) -> None:
    with pytest.raises(SourceFailed, match=error):
        importing(max_bytes=1_000_000)(b"\x28\xb5\x2f\xfd" + bytes.fromhex(frame))


def test_parquet_keeps_its_types(imported: Importing) -> None:
    imported("id,day,code\n1,2026-11-23,7\n2,,8\n", columns={"code": "text"})
    assert imported.last is not None
    content = (imported.settings.home / imported.last).read_bytes()

    rows = imported(content, "parquet")

    assert rows == [
        {"id": 1, "day": date(2026, 11, 23), "code": "7"},
        {"id": 2, "day": None, "code": "8"},
    ]
    assert imported(gzip.compress(content), "parquet") == rows


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        pytest.param(["1", "-5", "0"], [1, -5, 0], id="integers"),
        pytest.param(["1", ""], [1, None], id="empty_cells_have_no_kind"),
        pytest.param(["2.50", "4"], [Decimal("2.5"), Decimal(4)], id="decimals"),
        pytest.param(
            ["0.100000000001", "123456789012345678"],
            [Decimal("0.100000000001"), Decimal(123456789012345678)],
            id="decimals_to_their_last_digit",
        ),
        pytest.param(["2024-02-29"], [date(2024, 2, 29)], id="dates"),
        pytest.param(
            ["2026-11-23T06:00:00", "2026-11-23 06:00:00.250"],
            [NOON.replace(hour=6), NOON.replace(hour=6, microsecond=250_000)],
            id="timestamps",
        ),
        pytest.param(
            ["2026-11-23T12:00:00Z", "2026-11-23T12:00:00.5+00:00"],
            [NOON.replace(tzinfo=UTC), NOON.replace(tzinfo=UTC, microsecond=500_000)],
            id="instants",
        ),
        pytest.param(["true", "false"], [True, False], id="booleans"),
        pytest.param(["", ""], ["", ""], id="nothing_but_empty"),
        # As another kind they would be written in another way.
        *((["12", text], ["12", text]) for text in ("007", "1e5", "-0", "12345678901234567890")),
        (["0.1234567890123", "1"], ["0.1234567890123", "1"]),
        (["2026-02-30", "2026-01-01"], ["2026-02-30", "2026-01-01"]),
        (["2026-11-23T06:00:00+02:00"], ["2026-11-23T06:00:00+02:00"]),
    ],
)
def test_a_column_has_a_kind_when_each_cell_is_written_in_its_one_way(
    imported: Importing, cells: list[str], expected: list[Any]
) -> None:
    rows = imported("n,x\n" + "".join(f"{n},{cell}\n" for n, cell in enumerate(cells)))

    assert [row["x"] for row in rows] == expected
    assert [type(row["x"]) for row in rows] == [type(value) for value in expected]


def test_one_late_cell_makes_the_whole_column_text(imported: Importing) -> None:
    many = "".join(f"{number}\n" for number in range(5_000))

    rows = imported(f"id\n{many}007\n")

    assert [rows[0], rows[-1]] == [{"id": "0"}, {"id": "007"}]


def test_values_of_json_keep_what_they_say(imported: Importing) -> None:
    rows = imported(
        '[{"id": 1, "rate": 1e-7, "big": 12345678901234567890, "in": {"a": [1]}, "s": "007"},'
        ' {"id": 2, "rate": 0.5, "big": 1, "in": null, "s": "x", "late": true}]',
        "json",
    )

    big, inside = "12345678901234567890", '{"a":[1]}'
    assert rows == [
        {"id": 1, "rate": 1e-7, "big": big, "in": inside, "s": "007", "late": None},
        {"id": 2, "rate": 0.5, "big": "1", "in": None, "s": "x", "late": True},
    ]


def test_a_number_that_json_does_not_have_is_text(imported: Importing) -> None:
    rows = imported('[{"a": 1.5, "b": 1}, {"a": NaN, "b": 2}]', "json")

    assert rows == [{"a": "1.5", "b": 1}, {"a": "NaN", "b": 2}]


def test_declared_kinds_are_taken_as_declared(imported: Importing) -> None:
    rows = imported(
        "zip,amount,at,paid\n75001,007,2026-11-23T08:00:00+02:00,1\n",
        columns={"zip": "text", "amount": "integer", "at": "timestamp", "paid": "boolean"},
    )

    assert rows == [
        {"zip": "75001", "amount": 7, "at": datetime(2026, 11, 23, 6, tzinfo=UTC), "paid": True}
    ]


def test_rows_that_are_not_as_declared_are_left_out_and_reported(imported: Importing) -> None:
    good = "".join(f"{number},2026-01-01\n" for number in range(40))

    rows = imported(
        f'id,day\n{good}x,2026-01-01\n"4\n1",y\n50,2026-02-30\n',
        columns={"id": "integer", "day": "date"},
    )

    assert len(rows) == 40
    assert imported.left_out == {
        "rows": 3,
        "samples": [
            {"line": 42, "column": "id", "value": "'x'", "why": "is not a valid integer"},
            {"line": 43, "column": "id", "value": r"'4\n1'", "why": "is not a valid integer"},
            {"line": 44, "column": "day", "value": "'2026-02-30'", "why": "is not a valid date"},
        ],
    }


@pytest.mark.parametrize(
    ("format_name", "bad", "line", "value", "why"),
    [
        ("csv", "3,4,5\n", 32, "['3', '4', '5']", "3 cells, not 2"),
        ("csv", '3,"a"b\n', 32, "'3,\"a\"b'", "a quote is in the middle of a cell"),
        ("jsonl", "\n{\n", 32, "'{'", "is not JSON"),
        ("jsonl", "2\n", 31, "'2'", "write an object in { }"),
    ],
)
def test_broken_rows_are_left_out_and_reported(
    imported: Importing, format_name: str, bad: str, line: int, value: str, why: str
) -> None:
    head, good = ("a,b\n", "1,2\n") if format_name == "csv" else ("", '{"a": 1}\n')

    rows = imported(head + good * 30 + bad + good * 3, format_name)

    assert len(rows) == 33
    sample = {"line": line, "column": None, "value": value, "why": why}
    assert imported.left_out == {"rows": 1, "samples": [sample]}


def test_ten_samples_are_kept_of_many_bad_rows(imported: Importing) -> None:
    imported("a,b\n" + "1,2\n" * 300 + "x\n" * 20)

    assert imported.left_out["rows"] == 20
    assert [one["line"] for one in imported.left_out["samples"]] == list(range(302, 312))


def test_too_many_bad_rows_fail_the_domain(importing: Callable[..., Importing]) -> None:
    text = "a,b\n" + "1,2\n" * 8 + "x\n" * 2

    with pytest.raises(SourceFailed, match=r"line 10 \['x'\]: 1 cells, not 2; 2 of 10 rows"):
        importing(max_bad_rows=0.19)(text)
    assert len(importing(max_bad_rows=0.2)(text)) == 8


def test_an_open_quote_swallows_no_rows_unnoticed(importing: Callable[..., Importing]) -> None:
    with pytest.raises(SourceFailed, match=r"line 22 .*: its quote is not closed"):
        importing(max_bad_rows=1)("a,b\n" + "1,2\n" * 20 + '3,"open\n' + "1,2\n" * 20)


@pytest.mark.parametrize(
    ("format_name", "text", "error"),
    [
        pytest.param("csv", "", "source is empty", id="no_header"),
        pytest.param("csv", "id,id\n", "line 1 .*names a column twice", id="column_twice"),
        pytest.param("csv", "id,ID\n", "names a column twice: 'id' and 'ID'", id="capitals"),
        pytest.param("csv", "id,\n", "line 1 .*column without a name", id="column_without_name"),
        pytest.param("csv", "id;n\n1;2\n", "commas, not by semicolons", id="semicolons"),
        pytest.param("csv", f"2026\n1{',1' * 499}\n", "the next line has 500", id="title"),
        pytest.param("csv", f"c{',c' * 49_999}", "50,000 columns; at most 5,000", id="wide"),
        pytest.param("csv", "a\0,b\n1,2\n", r"name with a zero byte: 'a\\x00'", id="zero_byte"),
        pytest.param("csv", b"id\n\xff\n", "is not UTF-8", id="not_utf8"),
        pytest.param("json", "", r"does not end with \]", id="empty_json"),
        pytest.param("json", '[{"id": 1}', "at byte 10 in record/value 3", id="cut_off_json"),
        pytest.param("json", b'["\xff"]', "invalid UTF-8", id="json_not_utf8"),
        pytest.param("json", '{"id": 1}', "first character is '{'", id="no_list"),
        pytest.param("json", '[{"id": 1}, 2]', "row 2 '2': write an object", id="no_object"),
        pytest.param("json", '[{"": 1}]', "column without a name", id="no_key"),
        pytest.param("json", "[" * 100_000, "not JSON, a list", id="deep"),
        pytest.param("json", "Über uns: später", "not JSON, a list", id="a_page"),
        pytest.param("json", "[" + "9" * 5_000 + "]", "row 1 '999", id="huge_number"),
        pytest.param("jsonl", '{"id": 1}\n{', "line 2 '{': not JSON, and no line end", id="cut"),
        pytest.param("parquet", "id\n1\n", "source: not Parquet", id="no_parquet"),
        pytest.param("csv", gzip.compress(b"id\n1\n")[:-9], "truncated gzip", id="half_a_gzip"),
        pytest.param("csv", by_zstd(b"id\n1\n")[:-1], "truncated zstd.* byte 13", id="half_a_zst"),
        pytest.param("csv", by_zstd(b"id\n1\n") + b"tail", "not valid zstd", id="tail_of_zst"),
        pytest.param("csv", b"\x1f\x8bnonsense", "not valid gzip", id="broken_gzip"),
    ],
)
def test_errors_name_the_place_and_the_reason(
    imported: Importing, format_name: str, text: str | bytes, error: str
) -> None:
    with pytest.raises(SourceFailed, match=error) as failed:
        imported(text, format_name)

    assert str(failed.value).startswith("source")
    assert not list((imported.settings.home / "snapshots").rglob("*"))
    assert not list((imported.settings.home / "scratch").rglob("*/*"))


@pytest.mark.parametrize(
    ("pack", "error"), [(gzip.compress, "is larger unpacked"), (by_zstd, "may unpack to more")]
)
def test_a_bomb_is_refused(importing: Callable[..., Importing], pack: Packed, error: str) -> None:
    packed = pack(b"id\n" + b"0" * 20_000_000)
    assert len(packed) < 100_000

    with pytest.raises(SourceFailed, match=f"{error} than SCHED_FETCH_MAX_BYTES=1000000"):
        importing(max_bytes=1_000_000)(packed)


def test_no_rows_are_an_empty_snapshot(imported: Importing) -> None:
    assert imported("id,name\n") == []
    assert imported.figures == {"rows": 0, "columns": {}, "ended": True}
    assert imported("[]", "json") == []
    assert imported("", "jsonl") == []
    assert imported("[{}, {}]", "json") == [{}, {}]


def test_a_thousand_columns_are_read_at_once(imported: Importing) -> None:
    row = ",".join(str(i) for i in range(1_000))

    rows = imported(f"c{row.replace(',', ',c')}\n" + f"{row}\n" * 100)

    assert (len(rows), rows[99]["c999"]) == (100, 999)


def test_each_column_of_numbers_has_figures(imported: Importing) -> None:
    imported("id,n,day,ok,code\n1,2.50,2026-11-23,true,x\n2,-4,2026-11-24,false,\n3,,,true,007\n")

    columns = {"id": {"filled": 3, "sum": 6}, "n": {"filled": 2, "sum": -1.5}}
    assert imported.figures == {"rows": 3, "columns": columns, "ended": True}


def test_names_of_columns_are_no_sql(imported: Importing) -> None:
    assert imported('[{"a\\"b/~x\'": 1}]', "json") == [{"a\"b/~x'": 1}]
    rows = imported('"a""; DROP TABLE raw; --",b\'\n1,2\n')
    assert rows == [{'a"; DROP TABLE raw; --': 1, "b'": 2}]


def test_new_rows_replace_old_ones_of_their_key(imported: Importing) -> None:
    imported("id,v\n1,a\n2,b\n2,c\n", key=("id",))

    rows = imported("id,v\n3,d\n2,z\n3,e\n", key=("id",))

    assert rows == [{"id": 1, "v": "a"}, {"id": 2, "v": "z"}, {"id": 3, "v": "e"}]


def test_rows_keep_the_place_of_the_first_of_their_key(imported: Importing) -> None:
    imported("ID,v\n1,a\n2,b\n", key=("ID",))

    rows = imported("id,v\n3,d\n1,z\n", key=("id",))

    assert rows == [{"id": 1, "v": "z"}, {"id": 2, "v": "b"}, {"id": 3, "v": "d"}]


def test_the_same_rows_again_change_nothing(imported: Importing) -> None:
    text = "id,day,n\n1,2026-11-23,2.50\n2,,1\n"
    imported(text, key=("id",))
    assert imported.written is not None
    before = imported.written.imported.digest

    imported(text, key=("id",))

    assert imported.written.imported.digest == before


def test_columns_that_come_later_are_empty_in_the_rows_before(imported: Importing) -> None:
    imported("id,v\n1,a\n", key=("id",))

    rows = imported('[{"id": 2, "n": 5}]', "json", key=("id",))

    assert rows == [{"id": 1, "v": "a", "n": None}, {"id": 2, "v": None, "n": 5}]


def test_a_row_without_its_key_is_left_out(imported: Importing) -> None:
    rows = imported("id,v\n" + "1,a\n" * 20 + ",b\n", key=("id",))

    assert rows == [{"id": 1, "v": "a"}]
    (sample,) = imported.left_out["samples"]
    assert sample == {"line": 22, "column": "id", "value": "''", "why": "the key has no value"}


def test_a_key_that_is_no_column_is_named(imported: Importing) -> None:
    with pytest.raises(SourceFailed, match="key 'idd' is not a known column; did you mean \"id\""):
        imported("id\n1\n", key=("idd",))


def test_old_rows_that_are_not_as_declared_now_are_not_altered(imported: Importing) -> None:
    imported("id,v\n1,a\n", key=("id",))

    with pytest.raises(SourceFailed, match="rows of the last snapshot do not match"):
        imported("id,v\n2,5\n", key=("id",), columns={"v": "integer"})


def test_an_import_beyond_its_memory_goes_to_the_disk(importing: Callable[..., Importing]) -> None:
    text = "id,v\n" + "".join(f"{n},{n * 7919 % 1000003:040}\n" for n in range(2_000_000))

    rows = importing(memory_mb=288, threads=1)(text)

    assert len(rows) == 2_000_000


def test_a_small_parquet_file_does_not_fill_the_disk(importing: Callable[..., Importing]) -> None:
    with duckdb.connect() as engine:
        folder = importing().settings.home
        wide = "SELECT repeat('x', 1000) || (i % 7) AS a FROM range(300000) r(i)"
        engine.execute(f"COPY ({wide}) TO '{folder}/b.parquet' (FORMAT parquet, COMPRESSION zstd)")
    content = (folder / "b.parquet").read_bytes()
    assert len(content) < 1_000_000

    with pytest.raises(SourceFailed, match="more than 32 times SCHED_FETCH_MAX_BYTES=1000000"):
        importing(memory_mb=256, max_bytes=1_000_000)(content, "parquet")
