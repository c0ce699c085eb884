"""Where a domain's data come from: a file under the data root, or a URL."""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from runtime.config import Settings
from small_apps import downloads
from small_apps.failures import SourceFailed
from small_apps.formats import format_of
from small_apps.importing import Data, Rules
from small_apps.watch import Watch


@dataclass(frozen=True, slots=True)
class Source:
    """One source: a `file` relative to the data root, or a `url`; `format` may be told by either.

    `key` tells this source from another one that the domain had before.
    """

    key: str
    file: str | None = None
    url: str | None = None
    format: str | None = None
    rules: Rules = field(default_factory=Rules)

    @property
    def shown(self) -> str:
        """The source's name for people, without secrets."""
        return downloads.shown_url(self.url) if self.url else str(self.file)


@dataclass(frozen=True, slots=True)
class Fetched:
    """A source's data on this machine, ready to be imported; `validators` say which state.

    A download is private to its refresh until it was read; then it becomes the file `kept`.
    """

    data: Data
    validators: dict[str, str]
    kept: Path | None = None

    def keep(self) -> None:
        """Keep a download for `from: downloaded`; it is not private any longer."""
        if self.kept is not None:
            self.data.file.replace(self.kept)


def source_of(document: Mapping[str, Any]) -> Source:
    """Return the source that a domain's stored document names. Raises SourceFailed."""
    given = {key: document.get(key) for key in ("file", "url", "format")}
    if bool(given["file"]) == bool(given["url"]):
        raise SourceFailed('the source needs either "file" or "url"', permanent=True)
    key = sha256(repr(sorted(given.items(), key=str)).encode()).hexdigest()[:16]
    return Source(key, file=given["file"], url=given["url"], format=given["format"])


def resolve_file(data_root: Path, name: str) -> Path:
    """Return the file `name` under `data_root`, links followed. Raises SourceFailed.

    Nothing outside the root is reached: not by `..`, by an absolute path or by a link.
    """
    root = data_root.resolve()
    try:
        found = (root / name).resolve(strict=True)
    except OSError as error:
        raise SourceFailed(f"{name}: {error.strerror} (in {data_root})") from None
    except (RuntimeError, ValueError) as error:
        raise SourceFailed(f"{name!r}: {error}", permanent=True) from None
    if not found.is_relative_to(root):
        raise SourceFailed(f"{name} lies outside the data root {data_root}", permanent=True)
    return found


def file_state(file: Path, shown: str) -> os.stat_result:
    """Return the state of a regular file. Raises SourceFailed for anything else."""
    try:
        state = file.stat()
    except OSError as error:
        raise SourceFailed(f"{shown}: {error.strerror}") from None
    if not stat.S_ISREG(state.st_mode):
        raise SourceFailed(f"{shown} is not a file", permanent=True)
    return state


def file_validators(source: Source, state: os.stat_result) -> dict[str, str]:
    """Return what tells this state of a file from a later one."""
    return {
        "source": source.key,
        "mtime_ns": str(state.st_mtime_ns),
        "size": str(state.st_size),
    }


def fetch(source: Source, kept: Path, settings: Settings, watch: Watch) -> Fetched:
    """Bring the source's data to this machine: a URL is downloaded, a file stays put.

    Two refreshes may do so at once, so what was downloaded becomes `kept` only when it was read.
    Raises SourceFailed and Stopped.
    """
    if source.url is None:
        return _local(source, settings, watch)
    private = downloads.private_part(kept)
    answer = downloads.download(source.url, private, settings.fetch, watch)
    validators = {"source": source.key, **answer.validators} if answer.validators else {}
    format_name = source.format or format_of(_path_of(source.url), answer.media_type)
    data = Data(private, format_name, source.shown, source.rules, watch)
    return Fetched(data, validators, kept)


def fetch_again(source: Source, kept: Path, settings: Settings, watch: Watch) -> Fetched:
    """Return what an earlier refresh downloaded to `kept`, unasked whether it is still so."""
    if source.url is None:
        return _local(source, settings, watch)
    if not kept.exists():
        raise SourceFailed(f"{source.shown} was not downloaded yet; refresh from the source first")
    format_name = source.format or format_of(_path_of(source.url))
    return Fetched(Data(kept, format_name, source.shown, source.rules, watch), {})


def _local(source: Source, settings: Settings, watch: Watch) -> Fetched:
    name = str(source.file)
    file = resolve_file(settings.effective_data_root, name)
    state = file_state(file, name)
    if state.st_size > settings.fetch.max_bytes:
        raise SourceFailed(
            f"{name} is larger than SCHED_FETCH_MAX_BYTES={settings.fetch.max_bytes}",
            permanent=True,
        )
    data = Data(file, source.format or format_of(name), name, source.rules, watch)
    return Fetched(data, file_validators(source, state))


def _path_of(url: str) -> str:
    return url.partition("?")[0].partition("#")[0]
