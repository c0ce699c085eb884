"""Where a domain's data come from: a file under the data root, or a URL."""

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from runtime.config import Settings
from small_apps import downloads
from small_apps.downloads import Watch
from small_apps.failures import SourceFailed, Stopped
from small_apps.formats import Row, format_of, read_rows

STOP_CHECK_ROWS = 1_000


@dataclass(frozen=True, slots=True)
class Source:
    """One source: a `file` relative to the data root, or a `url`; `format` may be told by either.

    `key` tells this source from another one that the domain had before.
    """

    key: str
    file: str | None = None
    url: str | None = None
    format: str | None = None

    @property
    def shown(self) -> str:
        """The source's name for people, without secrets."""
        return downloads.shown_url(self.url) if self.url else str(self.file)


@dataclass(frozen=True, slots=True)
class Fetched:
    """A source's data on this machine, ready to be imported; `validators` say which state.

    A download is private to its refresh while it is read; then it becomes the file `kept`.
    """

    file: Path
    format: str
    shown: str
    validators: dict[str, str]
    kept: Path | None = None


def source_of(document: Mapping[str, Any]) -> Source:
    """Return the source that a domain's stored document names. Raises SourceFailed."""
    given = {key: document.get(key) for key in ("file", "url", "format")}
    if bool(given["file"]) == bool(given["url"]):
        raise SourceFailed('the source needs either "file" or "url"', permanent=True)
    key = sha256(repr(sorted(given.items(), key=str)).encode()).hexdigest()[:16]
    return Source(key, **given)


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

    Two refreshes may do so at once, so what was downloaded becomes `kept` only when `rows_of` has
    read it. Raises SourceFailed and Stopped.
    """
    if source.url is None:
        return _local(source, settings)
    private = downloads.private_part(kept)
    answer = downloads.download(source.url, private, settings.fetch, watch)
    validators = {"source": source.key, **answer.validators} if answer.validators else {}
    format_name = source.format or format_of(_path_of(source.url), answer.media_type)
    return Fetched(private, format_name, source.shown, validators, kept)


def fetch_again(source: Source, kept: Path, settings: Settings) -> Fetched:
    """Return what an earlier refresh downloaded to `kept`, unasked whether it is still so."""
    if source.url is None:
        return _local(source, settings)
    if not kept.exists():
        raise SourceFailed(f"{source.shown} was not downloaded yet; refresh from the source first")
    return Fetched(kept, source.format or format_of(_path_of(source.url)), source.shown, {})


def rows_of(fetched: Fetched, watch: Watch) -> Iterator[Row]:
    """Yield the rows. Raises SourceFailed, also when the file changed meanwhile, and Stopped."""
    try:
        yield from _watched(fetched, watch)
    finally:
        if fetched.kept is not None:
            fetched.file.replace(fetched.kept)


def _watched(fetched: Fetched, watch: Watch) -> Iterator[Row]:
    file_state(fetched.file, fetched.shown)
    done = 0
    for done, row in enumerate(read_rows(fetched.file, fetched.format, fetched.shown), 1):
        if done % STOP_CHECK_ROWS == 0:
            watch.progress(done, None)
            if watch.should_stop():
                raise Stopped
        yield row
    watch.progress(done, done)


def _local(source: Source, settings: Settings) -> Fetched:
    name = str(source.file)
    file = resolve_file(settings.effective_data_root, name)
    state = file_state(file, name)
    if state.st_size > settings.fetch.max_bytes:
        raise SourceFailed(
            f"{name} is larger than SCHED_FETCH_MAX_BYTES={settings.fetch.max_bytes}",
            permanent=True,
        )
    return Fetched(file, source.format or format_of(name), name, file_validators(source, state))


def _path_of(url: str) -> str:
    return url.partition("?")[0].partition("#")[0]
