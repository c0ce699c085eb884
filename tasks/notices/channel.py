"""Notify a channel: a chat, a pager or another service that the library Apprise knows.

Its URL is the installation's, and often a secret: no error and no log line contains a part of it.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode

from minutebook.grants import not_granted
from models.notices import NoticeKind
from models.store.notices import Notice
from runtime.config import Settings
from runtime.references import OF_SETTINGS, SecretMissing, resolved
from tasks.notices.text import content_of
from tasks.notices.undelivered import Undelivered
from tasks.notices.webhook import without

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
    if not is_own and not notice.grants.allows("notify", name):
        raise Undelivered(f"{name} {not_granted('notify', name)}", permanent=True)
    send(name, message_of(notice.kind, notice.payload), settings)


def message_of(kind: NoticeKind, told: Mapping[str, Any]) -> Message:
    """Return what a channel shows of a notice."""
    content = content_of(kind, told)
    about = str(told.get("action_uid") or "installation")
    suffix = "-overdue" if kind in _OF_OVERDUE else ""
    return Message(content.subject, content.text, f"minutebook-{about}{suffix}", kind in GOOD)


def send(name: str, message: Message, settings: Settings) -> None:
    """Send a message to a channel of the settings. Raises Undelivered."""
    try:
        import apprise
    except ImportError:
        raise Undelivered(MISSING, permanent=False) from None
    url = _url(name, settings)
    service = apprise.Apprise.instantiate(with_incident(url, message.about))
    if service is None:
        raise Undelivered(f"{setting_of(name)} is no URL that Apprise knows", permanent=True)
    service.overflow_mode = apprise.OverflowMode.TRUNCATE
    kind = apprise.NotifyType.SUCCESS if message.is_good else apprise.NotifyType.FAILURE
    capture: Any = apprise.LogCapture
    with capture(level=logging.WARNING) as log:
        is_taken = service.notify(title=message.title, body=message.text, notify_type=kind)
        said = log.getvalue()
    if not is_taken:
        raise Undelivered(f"channel {name}: {_why(said, url)}", permanent=False)


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


def _why(said: str, url: str) -> str:
    """Return the last line of what Apprise said, without a part of the URL."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    text = without(url, lines[-1]) if lines else "the service did not take it"
    return text[:_LONGEST_WHY]
