"""Notify a channel: a chat, a pager or another service that the library Apprise knows.

Its URL is the installation's, and often a secret: no error and no log line contains a part of it.
"""

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode

import httpx

from models.notices import NoticeKind
from models.store.notices import Notice
from runtime.config import Settings
from runtime.egress.deadline import Deadline
from runtime.egress.request import without
from runtime.references import OF_SETTINGS, SecretMissing, resolved
from tasks.notices.text import content_of
from tasks.notices.undelivered import Undelivered

_APPRISE = logging.getLogger("apprise")
_APPRISE.propagate = False
_APPRISE.addHandler(logging.NullHandler())
# Its client logs the paths of URLs at DEBUG.
logging.getLogger("urllib3").setLevel(logging.WARNING)

GOOD = frozenset(
    {
        NoticeKind.SUCCESS,
        NoticeKind.RESTORED,
        NoticeKind.RECOVERED,
        NoticeKind.SEEN,
        NoticeKind.MENDED,
    }
)
_OF_OVERDUE = frozenset({NoticeKind.OVERDUE, NoticeKind.SEEN})
# The parameter by which a service keeps incidents apart, and closes one when all is well.
_INCIDENTS = {"pagerduty": "dedup", "opsgenie": "alias"}
_LONGEST_WHY = 300
MISSING = "the extra notify is not installed here; add minutebook[notify] to the workers"


@dataclass(frozen=True, slots=True)
class Message:
    """What a channel shows; `is_good` closes an incident of the same `about`."""

    title: str
    text: str
    about: str
    is_good: bool


def notify(notice: Notice, settings: Settings, *, is_own: bool) -> None:
    """Send a notice to its channel; raises Undelivered. `is_own`: the installation sends it."""
    name = notice.target.to
    if not is_own and not notice.trust.is_trusted:
        raise Undelivered(f"{name} {notice.trust.why_not()}", permanent=True)
    send(name, message_of(notice.kind, notice.payload), settings)


def message_of(kind: NoticeKind, told: Mapping[str, Any]) -> Message:
    """Return what a channel shows of a notice."""
    content = content_of(kind, told)
    about = str(told.get("action_uid") or "installation")
    suffix = "-overdue" if kind in _OF_OVERDUE else ""
    return Message(content.subject, content.text, f"minutebook-{about}{suffix}", kind in GOOD)


def send(name: str, message: Message, settings: Settings) -> None:
    """Send a message to a channel of the settings. Raises Undelivered.

    Takes no longer than SCHED_HOOK_TIMEOUT_S: the limits of Apprise restart with every byte, and
    its URLs may set others.
    """
    url = _url(name, settings)
    deadline = Deadline(settings.hook.timeout_s)
    try:
        with deadline:
            why = deadline.within(lambda: _refusal(name, url, message))
    except httpx.ConnectTimeout:
        late = f"channel {name}: the service did not answer within {deadline.seconds:g} s"
        raise Undelivered(late, permanent=False) from None
    if why is not None:
        raise Undelivered(f"channel {name}: {why}", permanent=False)


def _refusal(name: str, url: str, message: Message) -> str | None:
    """Send a message by Apprise; return why the service did not take it, None if it did."""
    try:
        import apprise
    except ImportError:
        raise Undelivered(MISSING, permanent=False) from None
    with _Heard() as heard:
        service = apprise.Apprise.instantiate(with_incident(url, message.about))
        if service is None:
            raise Undelivered(f"{setting_of(name)} is no URL that Apprise knows", permanent=True)
        service.overflow_mode = apprise.OverflowMode.TRUNCATE
        kind = apprise.NotifyType.SUCCESS if message.is_good else apprise.NotifyType.FAILURE
        plain = apprise.NotifyFormat.TEXT
        is_taken = service.notify(
            title=message.title, body=message.text, notify_type=kind, body_format=plain
        )
    return None if is_taken else _why(heard.lines, url)


class _Heard(logging.Handler):
    """Keeps what Apprise logs in this thread; nothing of it reaches a log, for it shows URLs."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []
        self._thread = threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        if record.thread == self._thread:
            self.lines.append(record.getMessage())

    def __enter__(self) -> Self:
        _APPRISE.addHandler(self)
        return self

    def __exit__(self, *_error: object) -> None:
        _APPRISE.removeHandler(self)


def with_incident(url: str, about: str) -> str:
    """Return the URL with what makes a pager open and close one incident for each `about`."""
    place, _, query = url.partition("?")
    key = _INCIDENTS.get(place.partition("://")[0].lower())
    given = parse_qsl(query, keep_blank_values=True)
    if key is None or any(name in {key, "action"} for name, _ in given):
        return url
    return f"{place}?{urlencode([*given, (key, about), ('action', 'map')])}"


def setting_of(name: str) -> str:
    """Return the setting of a channel."""
    return f"SCHED_NOTIFY_{name.upper()}"


def _url(name: str, settings: Settings) -> str:
    given = settings.notify.get(name)
    if given is None:
        # Not permanent: a later try succeeds once the worker has it.
        raise Undelivered(f"{setting_of(name)} is not set for the workers", permanent=False)
    try:
        return resolved(given.get_secret_value(), OF_SETTINGS)
    except SecretMissing as error:
        raise Undelivered(f"{setting_of(name)}: {error}", permanent=False) from None


def _why(heard: Sequence[str], url: str) -> str:
    """Return the last line of what Apprise said, without a part of the URL."""
    text = without(url, heard[-1].strip()) if heard else "the service did not take it"
    return text[:_LONGEST_WHY]
