"""Sources that are cut anywhere: as a file, packed, and by a server that ends early."""

import gzip
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import duckdb
import pytest

from data.failures import SourceFailed
from data.fetch.sources import Fetched, fetch, source_of
from data.importing import Data, import_data
from data.importing.duckdb_engine import opened
from data.importing.read_parquet import load_parquet
from data.limits import ImportLimits
from data.settings import FetchSettings, Settings
from minutebook.testing import make_context
from tasks.bounded.limits import Watch
from tests.hostile.corpus import by_zstd
from tests.hostile.raw_server import answering, raw_server

# So that what is left out as a bad row would be seen as imported.
LIMITS = FetchSettings(threads=1, max_bad_rows=1, allow_private=True)
TEXTS = {
    "csv": b'id,name\n1,ann\n2,"b ""o"",\nb"\n3,cid\n',
    "json": b'[{"id": 1, "n": [1]}, {"id": 2}, [3], "x]", {"id": 4, "n": "c"} ]',
    "jsonl": b'{"id": 1, "n": {"a": [1]}}\n{"id": 2}\n{"id": 3, "n": "c"}\n',
}
EARLY = r"/a: .*(ended|closed|incomplete)"
# The cuts of which the content shows nothing: at the end of a line outside of quotes.
AT_LINE_ENDS = {"csv": {8, 14, 29}, "jsonl": {0, 27, 37}}
# A cut within the last cell cannot be told from a shorter cell, but all else can.
WITHOUT_END = {
    "csv": {*range(10, 14), 16, 20, 23, 28, *range(31, len(TEXTS["csv"]))},
    "jsonl": {26, 36, len(TEXTS["jsonl"]) - 1},
}


def make_parquet(folder: Path) -> bytes:
    file = folder / "source.parquet"
    with duckdb.connect() as made:
        made.execute(f"COPY (SELECT 1 AS id, 'ann' AS name) TO '{file}' (FORMAT parquet)")
    return file.read_bytes()


def imported(folder: Path, kind: str, content: bytes, *, ended_before: bool = False) -> int:
    """Import the content of a file; return the number of rows."""
    file, made = folder / "given", folder / "made.parquet"
    file.write_bytes(content)
    data = Data(file, kind, "source", ended_before=ended_before)
    limits = ImportLimits.of(LIMITS)
    with file.open("rb") as stream:
        return import_data(limits, data, stream, made, None, Watch()).row_count


def rows_in(folder: Path, kind: str, content: bytes, *, ended_before: bool = False) -> int | None:
    """Return the number of rows, None if the import fails."""
    with suppress(SourceFailed):
        return imported(folder, kind, content, ended_before=ended_before)
    return None


def let_through(folder: Path, kind: str, content: bytes, *, ended_before: bool = False) -> set[int]:
    """Return the cuts of a file that are imported, by the number of bytes that are left."""
    read = partial(rows_in, folder, kind, ended_before=ended_before)
    assert read(content) is not None
    return {size for size in range(len(content)) if read(content[:size]) is not None}


def test_a_list_that_is_cut_anywhere_is_not_imported(tmp_path: Path) -> None:
    assert let_through(tmp_path, "json", TEXTS["json"]) == set()


def test_a_parquet_file_that_is_cut_anywhere_is_not_imported(tmp_path: Path) -> None:
    parquet = make_parquet(tmp_path)
    file = tmp_path / "given"
    # Starting an engine for each cut would take most of the time.
    with opened(tmp_path, ImportLimits.of(LIMITS), "source") as engine:
        for size in range(len(parquet)):
            file.write_bytes(parquet[:size])
            with pytest.raises(SourceFailed, match="not Parquet"):
                load_parquet(engine, file, "source")

    assert rows_in(tmp_path, "parquet", parquet) == 1
    assert rows_in(tmp_path, "parquet", parquet[:-1]) is None


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_lines_are_imported_only_up_to_an_end(tmp_path: Path, kind: str) -> None:
    """If the last line had an end at the last import, as with all that write one."""
    through = let_through(tmp_path, kind, TEXTS[kind], ended_before=True)

    assert through == AT_LINE_ENDS[kind]


@pytest.mark.parametrize("kind", WITHOUT_END)
def test_a_last_line_without_an_end_is_imported_if_it_is_whole(tmp_path: Path, kind: str) -> None:
    through = let_through(tmp_path, kind, TEXTS[kind])

    assert through == AT_LINE_ENDS[kind] | WITHOUT_END[kind]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        pytest.param(b"id,na", r"line 1 \['id', 'na'\]: no line end", id="header"),
        pytest.param(b"a,b\n1,2\n3", r"line 3 \['3'\]: 1 cells, not 2, and no line", id="cells"),
        pytest.param(b'a,b\n1,2\n3,"x', r"line 3 '3,\"x': its quote is not", id="quote"),
        pytest.param(b'a,b\r\n1,2\n3,"x', "not CSV: unexpected end of data", id="mixed_ends"),
    ],
)
def test_a_cut_is_told_with_its_place(tmp_path: Path, content: bytes, error: str) -> None:
    with pytest.raises(SourceFailed, match=error) as failed:
        imported(tmp_path, "csv", content)

    assert not (tmp_path / "made.parquet").exists()
    # A retry may find the whole file.
    assert failed.value.permanent is ("unexpected" in error)


@pytest.mark.parametrize("pack", [gzip.compress, by_zstd])
@pytest.mark.parametrize("kind", ["csv", "json", "jsonl"])
def test_a_packed_file_that_is_cut_anywhere_is_not_imported(
    tmp_path: Path, kind: str, pack: Callable[[bytes], bytes]
) -> None:
    through = let_through(tmp_path, kind, pack(TEXTS[kind]))

    # An empty file is no list, no table, and no line of JSON Lines.
    assert through == ({0} if kind == "jsonl" else set())


# How a server ends early: it told the length, sent chunks without the last, or did neither.
HEADS = {
    "length": b"Content-Length: %d\r\n",
    "chunked": b"Transfer-Encoding: chunked\r\n",
    "neither": b"",
}


def fetched(folder: Path, kind: str, how: str, content: bytes, size: int) -> Fetched:
    """Fetch a source of which the server sends the first `size` bytes, and closes."""
    head = HEADS[how].replace(b"%d", b"%d" % len(content))
    body = content[:size]
    if how == "chunked" and body:
        body = b"%x\r\n%b\r\n" % (len(body), body)
    answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\n" + head + b"\r\n" + body
    with raw_server(answering(answer)) as port:
        return fetched_from(port, folder, kind)


def fetched_from(port: int, folder: Path, kind: str) -> Fetched:
    source = source_of({"url": f"http://127.0.0.1:{port}/a", "format": kind})
    settings = Settings(home=folder, fetch=LIMITS)
    return fetch(source, folder / "kept", settings, Watch(), make_context())


@pytest.mark.parametrize("how", ["length", "chunked"])
def test_an_answer_that_ends_early_is_not_read(tmp_path: Path, how: str) -> None:
    content = TEXTS["csv"]
    # All of it without the last chunk is cut as well.
    for size in range(len(content) + (how == "chunked")):
        with pytest.raises(SourceFailed, match=EARLY):
            fetched(tmp_path, "csv", how, content, size)
        assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_lines_need_an_answer_whose_end_shows(tmp_path: Path, kind: str) -> None:
    with pytest.raises(SourceFailed, match="neither Content-Length nor chunked") as failed:
        fetched(tmp_path, kind, "neither", TEXTS[kind], 20)

    assert failed.value.permanent
    assert not [*tmp_path.iterdir()]


def test_a_list_shows_its_end_without_a_length(tmp_path: Path) -> None:
    content = TEXTS["json"]

    whole = fetched(tmp_path, "json", "neither", content, len(content))
    cut = fetched(tmp_path, "json", "neither", content, 33)

    assert rows_in(tmp_path, "json", whole.data.file.read_bytes()) == 3
    assert rows_in(tmp_path, "json", cut.data.file.read_bytes()) is None


def test_a_part_that_was_not_asked_for_is_not_the_whole(tmp_path: Path) -> None:
    part = b"Content-Range: bytes 0-7/37\r\nContent-Length: 8\r\n\r\nid,name\n"
    answer = b"HTTP/1.1 206 Partial Content\r\n" + part
    with raw_server(answering(answer)) as port, pytest.raises(SourceFailed, match="answered 206"):
        fetched_from(port, tmp_path, "csv")
