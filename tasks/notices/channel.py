"""Notify a channel: a chat, a pager or another service that the library Apprise knows.

Its URL is the installation's, and often a secret: no error and no log line contains a part of it.
"""

import re
from importlib.util import find_spec
from urllib.parse import parse_qsl, urlencode

from models.notices import FindingKind, NoticeKind
from models.store.notices import Notice
from runtime.config import Settings
from runtime.egress.request import without
from runtime.references import OF_SETTINGS, SecretMissing, resolved
from tasks.bounded import client
from tasks.bounded.limits import InputFailed, Limits, Over, Watch
from tasks.notices.text import content_of
from tasks.outgoing.failures import Undelivered
from tasks.outgoing.mail.message import Content

# The parameter by which a service keeps incidents apart, and closes one when all is well.
_INCIDENTS = {"pagerduty": "dedup", "opsgenie": "alias"}
_LONGEST_WHY = 300
_MEMORY_MB, _CPU_S = 256, 20
# What a chat would take for a mention of people, or for a link under another name.
_MARKUP = re.compile(r"@|<(?=\S)|\](?=\()")
_NO_SPACE = "\N{ZERO WIDTH SPACE}"
MISSING = "the extra notify is not installed here; add minutebook[notify] to the workers"


def notify(notice: Notice, settings: Settings, *, is_own: bool) -> None:
    """Send a notice to its channel; raises Undelivered. `is_own`: the installation sends it."""
    name = notice.target.to
    if not is_own and not notice.trust.is_trusted:
        raise Undelivered(f"{name} {notice.trust.why_not()}", permanent=True)
    told = notice.payload
    about = str(told.get("action_uid") or "installation")
    is_overdue = any(one["kind"] == FindingKind.OVERDUE for one in told.get("findings", ()))
    incident = f"minutebook-{about}{'-overdue' if is_overdue else ''}"
    is_good = told["kind"] == NoticeKind.FINDING_ENDED or told.get("state") == "success"
    send(name, content_of(told), incident, settings, is_good=is_good)


def send(name: str, content: Content, incident: str, settings: Settings, *, is_good: bool) -> None:
    """Send a message to a channel of the settings. Raises Undelivered.

    If it `is_good`, a pager closes the incident that an earlier message of the same name opened.
    Apprise reads whatever the service answers, for as long as it does: it runs in a child process,
    which is killed after SCHED_HOOK_TIMEOUT_S.
    """
    url = _url(name, settings)
    if find_spec("apprise") is None:
        raise Undelivered(MISSING)
    its = {
        "url": with_incident(url, incident),
        "title": without_markup(content.subject),
        "text": without_markup(content.text),
        "is_good": is_good,
        "allow_private": settings.hook.allow_private,
    }
    try:
        call = client.Call("tasks.children.apprise_message:send", its, is_online=True)
        answer = client.run(call, _limits(name, settings), Watch())
    except InputFailed as error:
        raise Undelivered(without(url, str(error))) from None
    if not answer["is_known"]:
        raise Undelivered(f"{setting_of(name)} is no URL that Apprise knows", permanent=True)
    if answer["why"] is not None:
        why = without(url, answer["why"])[:_LONGEST_WHY]
        raise Undelivered(f"channel {name}: {why}")


def without_markup(text: str) -> str:
    """Return the text so that no chat reads a mention or a link in it; it looks the same."""
    return _MARKUP.sub(rf"\g<0>{_NO_SPACE}", text)


def _limits(name: str, settings: Settings) -> Limits:
    return Limits(
        _MEMORY_MB,
        _CPU_S,
        settings.hook.timeout_s,
        settings={Over.TIME: "SCHED_HOOK_TIMEOUT_S"},
        shown=f"channel {name}",
        remedy="check its service",
    )


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
        raise Undelivered(f"{setting_of(name)} is not set for the workers")
    try:
        return resolved(given.get_secret_value(), OF_SETTINGS)
    except SecretMissing as error:
        raise Undelivered(f"{setting_of(name)}: {error}") from None
