"""Hostile sources: small texts that unfold to any size, and files that no reader expects.

Each entry is made with real bytes by a function of the folder's writer, so that the corpus takes no
room in the repository.
"""

import gzip
import io
import json
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

MIB = 1 << 20
Made = Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class Hostile:
    """One hostile file: its name, format and bytes; `is_heavy` ones take seconds."""

    name: str
    format: str
    made: Made
    is_heavy: bool = False


def corpus() -> list[Hostile]:
    return [*_csv(), *_json(), *_jsonl(), *_parquet(), *_packed(), *_by_zstd()]


def _named(format: str, name: str, made: Made, *, is_heavy: bool = False) -> Hostile:
    return Hostile(f"{format}-{name}", format, made, is_heavy)


def _csv() -> Iterator[Hostile]:
    one = partial(_named, "csv")
    yield one("commas", lambda: b"," * (128 * MIB), is_heavy=True)
    yield one("one-cell", lambda: b"a\n" + b"x" * (128 * MIB) + b"\n", is_heavy=True)
    yield one("open-quote", lambda: b'a,b\n"' + b"x,\n" * (20 * MIB), is_heavy=True)
    yield one("blank-lines", lambda: b"a\n" + b"\n" * (64 * MIB), is_heavy=True)
    yield from _small_csv()


def _small_csv() -> Iterator[Hostile]:
    one = partial(_named, "csv")
    yield one("surplus", lambda: b"a\n" + b",".join([b"x"] * 100_000) + b"\n" + b"1\n" * 9)
    yield one("wide", lambda: _wide(1_000, 200), is_heavy=True)
    yield one("wider-than-allowed", lambda: _wide(5_001, 2))
    yield one("carriage-returns", lambda: b"a\r" + b"1\r" * (8 * MIB), is_heavy=True)
    yield one("no-newline", lambda: b"a")
    yield one("empty", lambda: b"")
    yield one("newline", lambda: b"\n")
    yield one("bom-only", lambda: b"\xef\xbb\xbf")
    yield one("zero-bytes", lambda: b"a,b\n" + b"\0" * MIB)
    yield one("zero-name", lambda: b"a\0b,c\n1,2\n")
    yield one("utf16", lambda: "a,b\n1,2\n".encode("utf-16"))
    yield one("latin1", lambda: b"a\n" + b"\xe9" * 100)
    yield one("surrogates", lambda: b"a\n\xed\xa0\x80\n")
    yield one("formulas", lambda: b'a\n=cmd|" /C calc"!A0\n@SUM(1)\n')
    yield one("sql-names", lambda: b'a"; DROP TABLE raw; --,b\n1,2\n')
    yield one("same-names", lambda: b"a,A,a\n1,2,3\n")
    yield one("numbers", lambda: b"a\n" + b"9" * 5_000 + b"\n" + b"1e999999999\n-0\nNaN\ninf\n")
    yield one("dates", lambda: b"a\n99999-99-99\n0000-00-00\n294247-01-10\n-1-1-1\n")
    yield one("terminal", lambda: b"\x1b]0;x\x07,\x1b[2J\n\x9b31m,\x08\x08\n")
    yield one("bidi", "\u202ea\u202c,\u200b\n1,2\n".encode)


def _wide(columns: int, rows: int) -> bytes:
    header = ",".join(f"c{n}" for n in range(columns))
    row = ",".join("7" for _ in range(columns))
    return f"{header}\n{f'{row}{chr(10)}' * rows}".encode()


def _json() -> Iterator[Hostile]:
    one = partial(_named, "json")
    row = b'{"a": 1, "b": "text", "c": [1, 2, 3]},'
    yield one("broken-end", lambda: b"[" + row * (63 * MIB // len(row)) + b"{", is_heavy=True)
    yield one("one-wide-object", lambda: b"[" + _object(5_000) + b"]", is_heavy=True)
    yield one("different-keys", lambda: _different_keys(4_000), is_heavy=True)
    yield one("deep", lambda: b"[" * 200_000)
    yield one("deep-values", lambda: b'[{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}]")
    yield one("deep-objects", lambda: b"[" + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"]")
    yield one("long-text", lambda: b'[{"a": "' + b"x" * (15 * MIB) + b'"}]')
    yield one("too-long-text", lambda: b'[{"a": "' + b"x" * (64 * MIB) + b'"}]', is_heavy=True)
    yield one("long-number", lambda: b'[{"a": ' + b"9" * MIB + b"}]")
    yield one("long-key", lambda: b'[{"' + b"k" * MIB + b'": 1}]')
    yield one("escapes", lambda: b'[{"a": "' + b"\\u0041" * MIB + b'"}]')
    yield one("open-text", lambda: b'[{"a": "' + b'\\"' * (4 * MIB))
    yield one("commas", lambda: b"[" + b"," * (16 * MIB))
    yield one("empty-objects", lambda: b"[" + b"{}," * (4 * MIB) + b"{}]", is_heavy=True)
    yield one("blanks", lambda: b" " * (32 * MIB))
    yield one("blanks-inside", lambda: b"[" + b" " * (32 * MIB) + b"]")
    for name, text in {
        "empty": "", "null": "null", "text": '"a"', "object": "{}", "list": "[]", "zero": "[\0]",
        "nan": '[{"a": NaN}, {"a": -Infinity}]', "scalars": "[1, null, true]", "comma": "[{},]",
        "twice": '[{"a": 1, "a": 2}]', "lists": "[[], [[]]]", "bom": "\ufeff[]", "open": "[",
        "half-escape": '[{"a": "\\u12"}]', "lone": '[{"a": "\\ud800"}]', "empty-key": '[{"": 1}]',
        "pointer": '[{"/a~1": 1, "~": 2}]', "path": '[{"$.*": 1, "a[0]": 2}]', "hash": "# no\n[]",
        "zero-text": '[{"a": "\\u0000"}]', "zero-key": '[{"a\\u0000b": 1}]', "after": "[{}] x",
    }.items():  # fmt: skip
        yield one(name, text.encode)


def _object(keys: int) -> bytes:
    return json.dumps({f"key_{n}": n for n in range(keys)}).encode()


def _different_keys(count: int) -> bytes:
    return json.dumps([{f"key_{n}": n} for n in range(count)]).encode()


def _jsonl() -> Iterator[Hostile]:
    one = partial(_named, "jsonl")
    yield one("no-newline", lambda: b'{"a": "' + b"x" * (64 * MIB), is_heavy=True)
    yield one("wide", lambda: b"\n".join([_object(900)] * 300), is_heavy=True)
    yield one("half-good", lambda: b'{"a": 1}\nx\n' * 500_000, is_heavy=True)
    yield one("blank", lambda: b"\n" * (32 * MIB))
    yield one("returns", lambda: b'{"a": 1}\r' * MIB)
    yield one("list", lambda: b'[{"a": 1}]\n')
    yield one("empty", lambda: b"")
    yield one("zero", lambda: b"\0\n")
    yield one("deep", lambda: b'{"a": ' * 50_000 + b"\n")
    yield one("one-line", lambda: b'{"a": 1} ' * MIB)


def _parquet() -> Iterator[Hostile]:
    one = partial(_named, "parquet")
    yield one(
        "repeated",
        lambda: _written("SELECT repeat('x', 100000) AS a FROM range(20000)"),
        is_heavy=True,
    )
    yield one("long-cell", lambda: _written("SELECT repeat('x', 100000000) AS a"), is_heavy=True)
    yield one("lists", lambda: _written("SELECT range(1000000) AS a FROM range(50)"), is_heavy=True)
    yield one("wide", lambda: _written(f"SELECT {_columns(3_000)}"), is_heavy=True)
    yield one("nested", lambda: _written(f"SELECT {'[' * 200}1{']' * 200} AS a"))
    yield one("footer-length", lambda: b"PAR1" + b"\0" * 100 + struct.pack("<I", 2**31) + b"PAR1")
    yield one("no-footer", lambda: b"PAR1")
    yield one("short", lambda: b"PAR1PAR1")
    yield one("zeros", lambda: b"PAR1" + b"\0" * MIB + b"PAR1")
    yield one("text", lambda: b"a,b\n1,2\n")


def _columns(count: int) -> str:
    return ", ".join(f"{n} AS c{n}" for n in range(count))


def _written(sql: str) -> bytes:
    with TemporaryDirectory() as folder, duckdb.connect() as engine:
        file = Path(folder, "made.parquet")
        engine.execute("SET threads = 1")
        engine.execute(f"COPY ({sql}) TO '{file}' (FORMAT parquet, COMPRESSION zstd)")
        return file.read_bytes()


def _packed() -> Iterator[Hostile]:
    def one(name: str, made: Made, format_name: str = "csv", *, is_heavy: bool = False) -> Hostile:
        return Hostile(f"gzip-{name}", format_name, made, is_heavy)

    yield one("bomb", lambda: _zipped(b"\0" * MIB, 2_000), is_heavy=True)
    yield one(
        "rows",
        lambda: b"".join((gzip.compress(b"a\n"), _zipped(b"1\n" * (MIB // 2), 400))),
        is_heavy=True,
    )
    yield one("twice", lambda: gzip.compress(gzip.compress(b"a\n1\n")))
    yield one("members", lambda: gzip.compress(b"") * 50_000)
    yield one("cut", lambda: gzip.compress(b"a\n1\n" * 1_000)[:-9])
    yield one("wrong-sum", lambda: gzip.compress(b"a\n1\n")[:-8] + b"\0" * 8)
    yield one("tail", lambda: gzip.compress(b"a\n1\n") + b"tail")
    yield one("mark-only", lambda: b"\x1f\x8b")
    yield one("long-name", lambda: b"\x1f\x8b\x08\x08" + b"\0" * 6 + b"x" * (16 * MIB))
    yield one("parquet", lambda: gzip.compress(_written("SELECT 1 AS a")), "parquet")
    yield one("json", lambda: gzip.compress(b"[" * MIB), "json")


def _by_zstd() -> Iterator[Hostile]:
    frame, block, last = b"\x28\xb5\x2f\xfd", b"\x02\0\x10\n", b"\x03\0\x10\n"
    # Blocks of four bytes that repeat a line end 131,072 times.
    lines = b"\x10\0\0a\n" + block * 1_000 + last
    yield Hostile("zstd-blank-lines", "csv", lambda: frame + b"\0\x58" + lines, is_heavy=True)
    yield Hostile("zstd-named-too-small", "csv", lambda: frame + b"\xa0\4\0\0\0" + lines)


def by_zstd(content: bytes) -> bytes:
    """Return `content` as one frame of Zstandard, without its size, as a pipe is packed."""
    with TemporaryDirectory() as folder, duckdb.connect() as engine:
        plain, packed = Path(folder, "plain"), Path(folder, "packed")
        plain.write_bytes(content)
        read = f"SELECT content FROM read_blob('{plain}')"
        engine.execute(f"COPY ({read}) TO '{packed}' (FORMAT blob, COMPRESSION zstd)")
        return packed.read_bytes()


def _zipped(block: bytes, times: int) -> bytes:
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as stream:
        for _ in range(times):
            stream.write(block)
    return packed.getvalue()
