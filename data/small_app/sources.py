"""Domains in the document of a small app: source, format, columns and mode."""

import re
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl, urlsplit

from pydantic import BeforeValidator, Field
from pydantic_core import InitErrorDetails

from models.document import Document, as_object
from models.hints import meant
from models.parsing import Reading
from models.problems import line_error
from models.values import Name, Names, one_of, parse_line, parse_text, parse_url
from models.values.references import is_reference, parse_reference

KINDS = ("text", "integer", "decimal", "number", "date", "timestamp", "boolean")
FORMATS = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}
PLACES = ("file", "url", "sql", "reader")
# Each key needs its place.
_GOES_WITH = {"headers": "url", "connection": "sql", "parameters": "reader"}
LONGEST_SQL = 100_000
HEADERS = '{"Authorization": "env:REPORTS_TOKEN"}'
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
# Headers of the request itself, which a source may not set.
_OWN_HEADERS = {"host", "content-length", "transfer-encoding", "connection", "range"}
_SECRET = re.compile(
    "auth(?!ors?([-_]|$))|cookie|token|secret|api[-_]?key|passw|credential|signature", re.IGNORECASE
)

Format = Literal["csv", "json", "jsonl", "parquet"]
Mode = Literal["full", "append"]


def parse_file(value: object) -> str:
    """Return a path inside the data folder; raises ValueError for any other."""
    path = parse_line(value, most=500)
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts or "\\" in path or re.match("[A-Za-z]:", path):
        raise ValueError('write a path inside the data folder, such as "sales/2026.csv"')
    return path


def parse_source_url(value: object) -> str:
    """Return an http(s) URL, or a reference to one; raises ValueError for anything else."""
    is_one = is_reference(value) and not str(value).startswith("file://")
    return parse_reference(value) if is_one else parse_url(value)


def _sql(value: object) -> str:
    text = parse_text(value, most=LONGEST_SQL).strip().rstrip(";").strip()
    if not re.match(r"(?i)(select|with|values|table)\b|\(", text):
        raise ValueError('write one query that reads, such as "SELECT id, amount FROM orders"')
    return text


def _header_problems(headers: object) -> Iterator[InitErrorDetails]:
    """Yield the problems of headers, without their values, which may be secrets."""
    for name, value in headers.items() if isinstance(headers, Mapping) else ():
        try:
            _check_header(str(name), value)
        except ValueError as error:
            yield line_error(("headers", str(name)), None, str(error))


def _check_header(name: str, value: object) -> None:
    if _HEADER.fullmatch(name) is None or name.lower() in _OWN_HEADERS:
        raise ValueError("is not a header that a source may send; leave it out")
    if is_reference(value):
        parse_reference(value)
    elif _SECRET.search(name):
        raise ValueError('is a secret; write a reference: "env:NAME" or "file:/absolute/path"')
    elif not parse_line(value, most=1_000).isascii():
        raise ValueError("contains a character that headers cannot contain; write ASCII")


def _columns(value: object) -> dict[str, str]:
    check = one_of(*KINDS)
    return {
        parse_line(name): str(check(kind))
        for name, kind in as_object(value, '{"id": "text"}').items()
    }


class SourceModel(Document):
    """The source of a domain: exactly one of a file, a URL, a query and a registered reader."""

    file: Annotated[str, BeforeValidator(parse_file)] | None = None
    url: Annotated[str, BeforeValidator(parse_source_url)] | None = None
    headers: (
        Annotated[dict[str, str], BeforeValidator(partial(as_object, example=HEADERS))] | None
    ) = None
    sql: Annotated[str, BeforeValidator(_sql)] | None = None
    connection: Name | None = None
    reader: Name | None = None
    parameters: Annotated[dict[str, Any], BeforeValidator(as_object)] | None = None

    @classmethod
    def contradictions(cls, raw: Mapping[str, Any], _reading: Reading, /) -> list[InitErrorDetails]:
        """Return the problems of a source's keys and headers."""
        places = [place for place in PLACES if place in raw]
        if len(places) != 1:
            remedy = (
                'write either {"file": "sales.csv"}, {"url": "https://example.com/sales.csv"}, '
                '{"sql": "SELECT …", "connection": "warehouse"} or {"reader": "crm"}'
            )
            # Without the source as value: its headers may contain a plain-text secret.
            return [line_error((), places or None, remedy)]
        problems = [
            line_error((key,), raw[key], f'is valid only with "{place}"; leave it out')
            for key, place in _GOES_WITH.items()
            if key in raw and place not in raw
        ]
        if "sql" in raw and "connection" not in raw:
            remedy = 'is required; name a connection of the configuration: "connection": "…"'
            problems.append(line_error(("connection",), None, remedy))
        return [*problems, *_header_problems(raw.get("headers"))]


class DomainModel(Document):
    """A data domain: its source, the source's format, its columns, and how rows are kept."""

    source: SourceModel
    format: Annotated[Format, BeforeValidator(one_of(*dict.fromkeys(FORMATS.values())))] | None = (
        None
    )
    columns: Annotated[dict[str, str], BeforeValidator(_columns)] = Field(default_factory=dict)
    mode: Annotated[Mode, BeforeValidator(one_of("full", "append"))] = "full"
    key: Names = ()

    @classmethod
    def completed(cls, raw: dict[str, Any], _reading: Reading, /) -> dict[str, Any]:
        """Return `raw` with the format of the source's suffix."""
        if "format" in raw:
            return raw
        found = _format_of_source(raw.get("source"))
        return {**raw, "format": found} if found else raw

    @classmethod
    def contradictions(cls, raw: Mapping[str, Any], _reading: Reading, /) -> list[InitErrorDetails]:
        """Return the problems between the source, its format, the mode and the key."""
        return [*_format_problems(raw), *_key_problems(raw)]


def _format_problems(raw: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
    source = raw.get("source")
    if not isinstance(source, Mapping):
        return
    has_format = "file" in source or "url" in source
    if has_format and "format" not in raw and _format_of_source(source) is None:
        remedy = 'is required without a known suffix; write "csv", "json", "jsonl" or "parquet"'
        yield line_error(("format",), None, remedy)
    if not has_format and "format" in raw and ("sql" in source or "reader" in source):
        text = 'only "file" and "url" have a format; leave it out'
        yield line_error(("format",), raw["format"], text)


def _key_problems(raw: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
    appends = str(raw.get("mode", "")).lower() == "append"
    if appends and not raw.get("key"):
        remedy = 'is required with "mode": "append"; list the columns that identify a row: ["id"]'
        yield line_error(("key",), raw.get("key"), remedy)
    if not appends and raw.get("key"):
        yield line_error(("key",), raw["key"], 'is valid only with "mode": "append"; leave it out')


def _format_of_source(source: object) -> str | None:
    if not isinstance(source, Mapping):
        return None
    file = source.get("file")
    if isinstance(file, str):
        return format_of_name(file)
    try:
        return format_of_name(urlsplit(str(source.get("url", ""))).path)
    except ValueError:
        return None


def format_of_name(name: str) -> str | None:
    """Return the format of a file name's suffix, or None; `.gz` and `.zst` are ignored."""
    path = PurePosixPath(name)
    if path.suffix.lower() in (".gz", ".zst"):
        path = path.with_suffix("")
    return FORMATS.get(path.suffix.lower())


def stored_source(domain: DomainModel) -> dict[str, Any]:
    """Return the part of a domain that a refresh needs, as JSON."""
    stored: dict[str, Any] = domain.source.model_dump(exclude_none=True)
    if domain.format is not None:
        stored["format"] = domain.format
    if domain.columns:
        stored["columns"] = domain.columns
    if domain.mode == "append":
        stored |= {"mode": "append", "key": list(domain.key)}
    return stored


def warnings_of_domains(
    domains: Mapping[str, DomainModel],
    connections: Collection[str],
    readers: Collection[str],
) -> list[str]:
    """Return one sentence for each unknown connection and reader, and for each exposed secret.

    A secret is exposed if a reader's or URL's parameter seems to hold it in plain text.
    """
    warnings = []
    for name, domain in domains.items():
        warnings += [
            f"domains.{name}.source.{where}: looks like a plain-text secret; "
            f'write "env:NAME" {what}'
            for where, what in _clear_secrets(domain.source)
        ]
        for key, known in (("connection", connections), ("reader", readers)):
            wanted = getattr(domain.source, key)
            if wanted is not None and wanted not in known:
                where = f'domains.{name}.source.{key} "{wanted}"'
                warnings.append(f"{where}: not known now{meant(wanted, known)}")
    return warnings


def _clear_secrets(source: SourceModel) -> Iterator[tuple[str, str]]:
    """Yield the place of each possible plain-text secret, and what a reference replaces."""
    for key, value in (source.parameters or {}).items():
        if _SECRET.search(key) and isinstance(value, str) and value and not is_reference(value):
            yield f"parameters.{key}", "instead"
    if source.url is not None and not is_reference(source.url):
        for key, value in parse_qsl(urlsplit(source.url).query):
            if _SECRET.search(key) and value:
                yield f"url, {key}", "for the whole URL"
