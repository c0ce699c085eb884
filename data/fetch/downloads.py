"""HTTP(S) sources: one-byte probes, and downloads with bounded size, time and redirects."""

import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import httpx

from data.failures import SourceFailed, check_size
from data.importing.bad_rows import short
from data.watch import Watch
from runtime.sections.data import FetchSettings
from tasks.outgoing.addresses import FETCHING, NoAddress
from tasks.outgoing.deadline import Deadline
from tasks.outgoing.guard import guarded_client
from tasks.outgoing.http_errors import reason_of, status_line

MOST_REDIRECTS = 5
PROBE_TIMEOUT_S = 20
# A compressed response has a different ETag, and its size is not the bounded one.
HEADERS = {"User-Agent": "minutebook", "Accept-Encoding": "identity"}


@dataclass(frozen=True, slots=True)
class Request:
    """A request: a URL, the source's own headers, and a name to show instead of a secret URL."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None

    @property
    def shown(self) -> str:
        """The display name, without secrets."""
        return self.name or shown_url(self.url)


@dataclass(frozen=True, slots=True)
class Answer:
    """A server's metadata of a resource; `is_framed` is whether an early end of it would show."""

    validators: dict[str, str]
    media_type: str | None
    is_framed: bool


def shown_url(url: str) -> str:
    """Return `url` without user, password, query and fragment, which may hold secrets."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        return "the URL"
    return str(parsed.copy_with(username=None, password=None, query=None, fragment=None))


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
) -> Iterator[httpx.Response]:
    """Yield the response after all redirects, its body unread; every failure is SourceFailed."""
    shown = wanted.shown
    client = guarded_client(deadline, allow_private=settings.allow_private, setting=FETCHING)
    try:
        with deadline, client, closing(_followed(client, wanted, headers)) as response:
            # A part that was not asked for is not the whole.
            if response.status_code not in ((200, 206) if headers else (200,)):
                raise SourceFailed(f"{shown} answered {status_line(response.status_code)}")
            _check_encoding(response, shown)
            yield response
            if deadline.is_over:
                raise httpx.ReadTimeout("")
    except (NoAddress, SourceFailed) as error:
        raise _unnamed(error, wanted) from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        if watch is not None:
            watch.check()
        if deadline.is_over or isinstance(error, httpx.TimeoutException):
            text = f"{shown} took longer than SCHED_FETCH_TIMEOUT_S={settings.timeout_s:g}"
            raise SourceFailed(text) from None
        raise SourceFailed(f"{shown}: {reason_of(error)}") from None


def _check_encoding(response: httpx.Response, shown: str) -> None:
    """Raise SourceFailed for a packed response: unpacked, its size has no bound."""
    encoding = response.headers.get("content-encoding", "identity").strip()
    if encoding.lower() not in ("", "identity"):
        raise SourceFailed(
            f"{shown} answered with Content-Encoding {short(encoding)}, though only identity was "
            "accepted; let the server send the file as it is, even a .gz file",
            permanent=True,
        )


def _unnamed(error: NoAddress | SourceFailed, wanted: Request) -> SourceFailed:
    """Return the failure, without the host if the URL is a secret."""
    text = str(error)
    if wanted.name is None:
        return SourceFailed(text, permanent=error.permanent)
    try:
        host = httpx.URL(wanted.url).host
    except httpx.InvalidURL:
        host = wanted.url
    if wanted.url in text or (host and host in text):
        text = f"{wanted.name}: the request to its server failed"
    return SourceFailed(text, permanent=error.permanent)


def _followed(client: httpx.Client, wanted: Request, headers: dict[str, str]) -> httpx.Response:
    # httpx's own following reads the whole body of every redirect.
    own = HEADERS | headers
    request = client.build_request("GET", wanted.url, headers=dict(wanted.headers) | own)
    origin = _origin(request.url)
    for _hop in range(MOST_REDIRECTS + 1):
        response = client.send(request, stream=True)
        if response.next_request is None:
            return response
        response.close()
        request = response.next_request
        if _origin(request.url) != origin:
            # The source's credentials are not for the servers it redirects to.
            for name in wanted.headers:
                request.headers.pop(name, None)
            request.headers.update(own)
    raise SourceFailed(f"{wanted.shown} redirects more than {MOST_REDIRECTS} times")


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _bounded(
    response: httpx.Response, shown: str, settings: FetchSettings, watch: Watch
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


def _answer(response: httpx.Response) -> Answer:
    named = {"etag": "etag", "last-modified": "last_modified"}
    validators = {
        key: response.headers[header]
        for header, key in named.items()
        if response.headers.get(header)
    }
    is_framed = any(name in response.headers for name in ("content-length", "transfer-encoding"))
    return Answer(validators, response.headers.get("content-type"), is_framed)
