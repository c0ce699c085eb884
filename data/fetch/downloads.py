"""HTTP(S) sources: one-byte probes, and downloads with bounded size, time and redirects."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

from data.bad_rows import short
from data.failures import SourceFailed, check_size
from data.settings import FetchSettings
from runtime.egress.addresses import FETCHING
from runtime.egress.deadline import Deadline
from runtime.egress.http_errors import status_line
from runtime.egress.request import AGENT, Request, RequestFailed, Response, opened
from tasks.bounded.limits import Watch

PROBE_TIMEOUT_S = 20


@dataclass(frozen=True, slots=True)
class Answer:
    """A server's metadata of a resource; `is_framed` is whether an early end of it would show."""

    validators: dict[str, str]
    is_framed: bool


def probe(wanted: Request, settings: FetchSettings) -> Answer | None:
    """Return the metadata from a GET of the first byte; None if it fails."""
    timeout_s = min(settings.timeout_s, PROBE_TIMEOUT_S)
    try:
        with _opened(wanted, settings, Deadline(timeout_s), {"Range": "bytes=0-0"}) as response:
            return _answer(response)
    except SourceFailed:
        return None


def private_part(target: Path) -> Path:
    """Return a new name beside `target` for one writer; maintenance removes leftovers."""
    return target.with_name(f"{target.name}.{uuid4()}.part")


def keep(part: Path, target: Path) -> None:
    """Rename a download to `target`, and remove the domain's downloads from other places."""
    part.replace(target)
    for other in target.parent.iterdir():
        if other.stem == target.stem and other != target:
            other.unlink(missing_ok=True)


def download(wanted: Request, target: Path, settings: FetchSettings, watch: Watch) -> Answer:
    """Download to `target`, which a failure leaves unfinished. Raises SourceFailed, Stopped."""
    deadline = Deadline(settings.timeout_s)
    with (
        watch.interrupted_by(deadline.cut),
        _opened(wanted, settings, deadline, {}, watch) as response,
        target.open("wb") as stream,
    ):
        for chunk in _bounded(response, wanted.shown, settings, watch):
            stream.write(chunk)
        stream.flush()
        os.fsync(stream.fileno())
        return _answer(response)


@contextmanager
def _opened(
    wanted: Request,
    settings: FetchSettings,
    deadline: Deadline,
    headers: dict[str, str],
    watch: Watch | None = None,
) -> Iterator[Response]:
    """Yield the response after all redirects, its body unread; every failure is SourceFailed."""
    shown = wanted.shown
    wanted = replace(wanted, allow_private=settings.allow_private, setting=FETCHING)
    try:
        with opened(wanted, deadline, AGENT | headers) as response:
            # A part that was not asked for is not the whole.
            if response.status_code not in ((200, 206) if headers else (200,)):
                raise SourceFailed(f"{shown} answered {_status(response)}")
            _check_encoding(response, shown)
            yield response
    except RequestFailed as error:
        if watch is not None:
            watch.check()
        late = f"took longer than SCHED_FETCH_TIMEOUT_S={settings.timeout_s:g}"
        text = f"{shown} {late}" if error.is_late else f"{shown}: {error}"
        raise SourceFailed(text, permanent=error.permanent) from None


def _status(response: Response) -> str:
    line = status_line(response.status_code)
    advice = ", a redirect, which a request with a secret does not follow; write where it leads"
    return f"{line}{advice if response.has_redirect_location else ''}"


def _check_encoding(response: Response, shown: str) -> None:
    """Raise SourceFailed for a packed response: unpacked, its size has no bound."""
    encoding = response.headers.get("content-encoding", "identity").strip()
    if encoding.lower() not in ("", "identity"):
        raise SourceFailed(
            f"{shown} answered with Content-Encoding {short(encoding)}, though only identity was "
            "accepted; let the server send the file as it is, even a .gz file",
            permanent=True,
        )


def _bounded(
    response: Response, shown: str, settings: FetchSettings, watch: Watch
) -> Iterator[bytes]:
    total = int(response.headers.get("content-length", 0)) or None
    done, what = 0, f"{shown} is larger"
    check_size(what, total or 0, settings.max_bytes)
    # A chunk size would hold back the bytes of a slow server, and delay the checks.
    for chunk in response.iter_raw():
        done += len(chunk)
        check_size(what, done, settings.max_bytes)
        watch.check()
        watch.progress(done, total)
        yield chunk


def _answer(response: Response) -> Answer:
    named = {"etag": "etag", "last-modified": "last_modified"}
    validators = {
        key: response.headers[header]
        for header, key in named.items()
        if response.headers.get(header)
    }
    is_framed = any(name in response.headers for name in ("content-length", "transfer-encoding"))
    return Answer(validators, is_framed)
