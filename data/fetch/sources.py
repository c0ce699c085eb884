"""Fetching of a domain's source: a file, a URL, a query, or a registered reader."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from data.beneath import opened_beneath
from data.failures import SourceFailed, check_size
from data.fetch import downloads, readers
from data.fetch.query import query
from data.importing import OF_LINES, Data, Rules
from data.settings import Settings
from data.small_app.allowed import is_beneath, outside
from data.small_app.sources import PLACES
from minutebook.steps import StepContext
from models.trust import not_for_restricted
from models.values.references import is_reference
from runtime.egress.request import Request, shown_url
from runtime.references import SecretMissing, resolved
from runtime.urls import check_web_url
from tasks.bounded.limits import Watch

UNFRAMED = (
    "answered with neither Content-Length nor chunked encoding, so an early end would not show; "
    "let the server send either"
)
NO_URL = "holds no http or https URL; percent-encode special characters of its password"


@dataclass(frozen=True, slots=True)
class Source:
    """One source: a `file` relative to the data root, a `url`, a query `sql`, or a `reader`.

    `key` differs from the keys of the domain's earlier sources.
    """

    key: str
    file: str | None = None
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    sql: str | None = None
    connection: str = ""
    reader: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    # Of a file or a URL; a query and a reader write JSON Lines.
    format: str = "jsonl"
    rules: Rules = field(default_factory=Rules)

    @property
    def place(self) -> str:
        """A hash of where the data come from, independent of their format and rules."""
        place = (self.url, self.sql, self.connection, self.reader, sorted(self.parameters.items()))
        return sha256(repr(place).encode()).hexdigest()[:16]

    @property
    def shown(self) -> str:
        """The source's display name, without secrets."""
        if self.url:
            return self.url if is_reference(self.url) else shown_url(self.url)
        if self.reader:
            return f"reader {self.reader}"
        return f"connection {self.connection}" if self.sql else str(self.file)


@dataclass(frozen=True, slots=True)
class Fetched:
    """A source's data on this machine, ready to import; `validators` identify their state.

    A download is private to its refresh until it is read; then it becomes the file `kept`.
    """

    data: Data
    validators: dict[str, str]
    kept: Path | None = None

    def keep(self) -> None:
        """Keep a download for `from: downloaded`; it is no longer private."""
        if self.kept is not None:
            downloads.keep(self.data.file, self.kept)

    def discard(self) -> None:
        """Remove a download that was not kept."""
        if self.kept is not None:
            self.data.file.unlink(missing_ok=True)


def source_of(document: Mapping[str, Any]) -> Source:
    """Return the source of a domain's stored document. Raises SourceFailed."""
    if sum(bool(document.get(place)) for place in PLACES) != 1:
        text = 'the source needs exactly one of "file", "url", "sql" and "reader"'
        raise SourceFailed(text, permanent=True)
    known = ("file", "url", "headers", "sql", "connection", "reader", "parameters", "format")
    given = {key: document[key] for key in known if document.get(key) is not None}
    rules = Rules(document.get("columns", {}), tuple(document.get("key", ())))
    text = repr(sorted(document.items(), key=str))
    return Source(key=sha256(text.encode()).hexdigest()[:16], rules=rules, **given)


def wanted_of(source: Source, settings: Settings) -> Request:
    """Return the request of a URL source, its secrets resolved. Raises SourceFailed."""
    try:
        url = _secret(source.url, settings) if is_reference(source.url) else None
        host = urlsplit(url or str(source.url)).hostname or ""
        headers = {
            name: _secret(value, settings, host) if is_reference(value) else value
            for name, value in source.headers.items()
        }
    except SecretMissing as error:
        raise SourceFailed(str(error)) from None
    except ValueError:
        raise SourceFailed(f"{source.shown} {NO_URL}") from None
    if not all(map(_may_be_sent, headers.values())):
        text = "a header's secret has an invalid character, or begins or ends with a space"
        raise SourceFailed(f"{source.shown}: {text}")
    if url is None:
        return Request(str(source.url), headers)
    try:
        check_web_url(url.strip())
    except ValueError:
        raise SourceFailed(f"{source.shown} {NO_URL}") from None
    return Request(url.strip(), headers, source.shown)


def _secret(text: object, settings: Settings, host: str | None = None) -> str:
    return resolved(str(text), settings.secrets, host=host)


def _may_be_sent(text: str) -> bool:
    return text.isascii() and text.isprintable() and text == text.strip()


def allowed_place(name: str, settings: Settings) -> tuple[Path, str]:
    """Return the folder that may be read, and the path of a file of the data root in there.

    Raises SourceFailed for a file outside that folder. Links must not lead out of it.
    """
    folder = settings.folder
    if folder and not is_beneath(name, folder):
        raise SourceFailed(f"{name} {outside(folder)}", permanent=True)
    return settings.effective_data_root / folder, str(PurePosixPath(name).relative_to(folder))


def file_validators(source: Source, state: os.stat_result) -> dict[str, str]:
    """Return the validators that identify this state of a file."""
    return {
        "source": source.key,
        "mtime_ns": str(state.st_mtime_ns),
        "size": str(state.st_size),
    }


def probe(source: Source, settings: Settings) -> dict[str, str] | None:
    """Return the validators of the source's current state; None if they are unknown.

    A URL is probed by its first byte; a query and a reader have no validators. A failed probe
    returns None: the data are read instead, and that read reports the error.
    """
    if source.sql is not None or source.reader is not None:
        return None
    try:
        if source.url is not None:
            answer = downloads.probe(wanted_of(source, settings), settings.fetch)
            return _validators_of(source, answer) or None
        with opened_beneath(*allowed_place(str(source.file), settings)) as stream:
            return file_validators(source, os.fstat(stream.fileno()))
    except SourceFailed:
        return None


def fetch(
    source: Source,
    kept: Path,
    settings: Settings,
    watch: Watch,
    context: StepContext,
) -> Fetched:
    """Return the source's data on this machine: a file stays put, all else is downloaded.

    A download becomes `kept` only after it was read, because two refreshes may run at once. A
    reader gets the `context`. Raises SourceFailed and Stopped.
    """
    if settings.folder and _reaches_beyond(source):
        why = not_for_restricted(settings.folder)
        raise SourceFailed(f"{source.shown} {why}", permanent=True)
    if source.file is not None:
        return _local(source, settings)
    private = downloads.private_part(kept)
    private.parent.mkdir(parents=True, exist_ok=True)
    try:
        if source.url is not None:
            return _downloaded(source, private, kept, settings, watch)
        return _rows_of(source, private, kept, settings, watch, context)
    except BaseException:
        private.unlink(missing_ok=True)
        raise


def _validators_of(source: Source, answer: downloads.Answer | None) -> dict[str, str]:
    """Return the validators that identify the state of a URL; none if they are unknown."""
    if answer is None or not answer.validators:
        return {}
    return {"source": source.key, **answer.validators}


def _reaches_beyond(source: Source) -> bool:
    """Return whether a source is one of trusted small apps alone."""
    texts = (source.url, *source.headers.values(), *source.parameters.values())
    return source.sql is not None or source.reader is not None or any(map(is_reference, texts))


def _downloaded(
    source: Source, private: Path, kept: Path, settings: Settings, watch: Watch
) -> Fetched:
    wanted = wanted_of(source, settings)
    answer = downloads.download(wanted, private, settings.fetch, watch)
    validators = _validators_of(source, answer)
    if not answer.is_framed and source.format in OF_LINES:
        raise SourceFailed(f"{source.shown} {UNFRAMED}", permanent=True)
    data = Data(private, source.format, source.shown, source.rules)
    return Fetched(data, validators, kept)


def _rows_of(
    source: Source,
    private: Path,
    kept: Path,
    settings: Settings,
    watch: Watch,
    context: StepContext,
) -> Fetched:
    if source.sql is not None:
        bad_rows = query(source.sql, source.connection, private, settings, watch)
    else:
        name = str(source.reader)
        bad_rows = readers.read(name, source.parameters, private, context, settings, watch)
    return Fetched(Data(private, "jsonl", source.shown, source.rules, bad_rows), {}, kept)


def fetch_again(source: Source, kept: Path, settings: Settings) -> Fetched:
    """Return the earlier download `kept`, without asking the source whether it changed."""
    if source.file is not None:
        return _local(source, settings)
    if not kept.exists():
        raise SourceFailed(f"{source.shown} was not downloaded yet; refresh from the source first")
    return Fetched(Data(kept, source.format, source.shown, source.rules), {})


def _local(source: Source, settings: Settings) -> Fetched:
    name = str(source.file)
    root, path = allowed_place(name, settings)
    with opened_beneath(root, path) as stream:
        state = os.fstat(stream.fileno())
    check_size(f"{name} is larger", state.st_size, settings.fetch.max_bytes)
    data = Data(Path(path), source.format, name, source.rules, root=root)
    return Fetched(data, file_validators(source, state))
