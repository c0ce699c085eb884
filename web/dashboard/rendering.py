"""Render pages: templates, texts, instants in the viewer's zone, and the headers of a page."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote
from zoneinfo import ZoneInfo

import pytz
from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from models.action.schedule import ONE_SECOND
from models.operation import REQUESTED
from models.store.operations.eta import left_of
from models.values import format_instant
from models.values.durations import lasting
from models.values.zones import in_zone
from runtime.clock import utc_now
from runtime.plug_ins import named, plug_ins
from services.doctor.disk import in_words
from services.operations import OperationRow
from services.status.pauses import PauseRow
from services.words import brief
from web.dashboard.fields import as_field
from web.dashboard.texts import ending_of, person, say, step_name, texts

HERE = Path(__file__).parent
STATIC = HERE / "static"
OK = 200
# Each page says it; a change of this process is seen at once.
PAUSES_KEPT_S = 3.0
ZONE_COOKIE = "mb_zone"
NOTICE_COOKIE = "mb_notice"
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
# With no-referrer, a browser would hide the origin of our own forms from us.
HEADERS = {"Content-Security-Policy": POLICY, "Referrer-Policy": "same-origin"}
# The zones that fields offer; every known one is accepted.
ZONES = pytz.common_timezones
# As sentences have it; some days do not exist, or not in each zone: 9999-12-31T23:59:59Z.
_INSTANT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)")
# How each state of an operation, or trouble of an action, looks: a tone of the style sheet.
TONES = {
    "pending": "idle",
    "queued": "idle",
    "running": "busy",
    "success": "good",
    "partial": "warn",
    "failed": "bad",
    "missed": "warn",
    "cancelled": "idle",
    "skipped": "idle",
    "dropped": "idle",
    "quarantined": "bad",
    "overdue": "warn",
    "never ran": "warn",
    "slow": "warn",
}


class Page:
    """What templates know of the request that they are rendered for."""

    def __init__(self, request: Request) -> None:
        self.root = request.scope.get("root_path", "")
        self.path = request.url.path.removeprefix(self.root)
        self.origin = f"{request.url.scheme}://{request.url.netloc}"
        self.query = f"?{request.url.query}" if request.url.query else ""
        # The zone that the viewer chose, or that of the browser; None for an unknown one.
        self.chosen_zone = _zone(request.cookies.get(ZONE_COOKIE))
        self.zone = self.chosen_zone or "UTC"
        self.now = utc_now()
        # The Visitor; None for a page that needs no sign-in.
        self.visitor = getattr(request.state, "visitor", None)
        # What is paused, for the head of a whole page.
        self.pauses: tuple[PauseRow, ...] = ()
        # What the change before this page did; shown once.
        self.notice = unquote(request.cookies.get(NOTICE_COOKIE, ""))

    def url(self, path: str) -> str:
        """Return the URL of a path of ours, below the path that a proxy serves."""
        return f"{self.root}{path}"

    def static(self, name: str) -> str:
        """Return the URL of a file; it changes with the file's content."""
        return f"{self.root}/static/{name}?v={_version(name)}"

    def time(self, at: datetime | None, zone: str | None = None) -> Markup:
        """Return an instant: relative to now, and absolute in `zone` or the viewer's."""
        if at is None:
            return Markup('<span class="none">-</span>')
        shown = zone or self.zone
        return Markup(
            '<time datetime="{}" title="{} {} · {}"><span class="rel">{}</span>'
            ' <span class="abs">{}</span></time>'
        ).format(
            format_instant(at),
            in_zone(at, shown),
            shown,
            format_instant(at),
            self.relative(at),
            _short(at.astimezone(ZoneInfo(shown)), self.now.astimezone(ZoneInfo(shown))),
        )

    def field(self, text: str) -> str:
        """Return an instant that a person wrote, for a field that shows the viewer's zone."""
        return as_field(text, self.zone)

    def clock(self, at: datetime) -> Markup:
        """Return an instant in the viewer's zone, and in UTC as a hint."""
        local, now = (one.astimezone(ZoneInfo(self.zone)) for one in (at, self.now))
        return Markup('<time datetime="{0}" title="{0}">{1}</time>').format(
            format_instant(at), _short(local, now)
        )

    def local(self, text: str) -> Markup:
        """Return a text with the instants in it as `clock` shows them."""
        parts = enumerate(_INSTANT.split(text))
        return Markup("").join(self._instant(one) if n % 2 else escape(one) for n, one in parts)

    def _instant(self, text: str) -> Markup:
        try:
            return self.clock(datetime.fromisoformat(text))
        except (ValueError, OverflowError):
            return escape(text)

    def clock_of_line(self, at: str) -> str:
        """Return the time of day of a log line in the viewer's zone; a broken one as it is."""
        try:
            return f"{datetime.fromisoformat(at).astimezone(ZoneInfo(self.zone)):%H:%M:%S}"
        except (ValueError, OverflowError):
            return at

    def relative(self, at: datetime) -> str:
        """Return an instant as a distance from now: `in 5 min`, `2 h ago`."""
        seconds = (at - self.now).total_seconds()
        key = "time.in" if seconds >= 0 else "time.ago"
        return say(key, span=_one_unit(abs(at - self.now)))

    def ending(self, one: OperationRow) -> str:
        """Return when a running operation should end: `ends in 40 s`, `longer than usual`."""
        return ending_of(left_of(one.started_at, one.eta_at, self.now))

    def late(self, one: OperationRow) -> str:
        """Return how late an operation began; nothing if in time, or if its past was chosen."""
        if one.cause in REQUESTED or one.first_started_at is None:
            return ""
        late = one.first_started_at - one.occurrence_at
        return brief(late.total_seconds()) if late >= ONE_SECOND else ""

    def lasting(self, since: datetime | None, until: datetime | None) -> str:
        """Return how long something took, or takes until now."""
        return "" if since is None else brief(((until or self.now) - since).total_seconds())


def render(
    request: Request,
    template: str,
    values: Mapping[str, Any],
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> HTMLResponse:
    """Return a page, or a part of one."""
    page = Page(request)
    if status == OK and page.visitor is not None:
        page.pauses = request.app.state.pauses.of(page.visitor.whole, PAUSES_KEPT_S).root
    known = {"page": page, "visitor": page.visitor, **values}
    text = _templates().get_template(template).render(known)
    # A cookie or a document may hold half a character, which UTF-8 cannot write.
    body = text.encode("utf-8", "backslashreplace")
    made = HTMLResponse(body, status, {**HEADERS, **(headers or {})})
    if page.notice:
        made.delete_cookie(NOTICE_COOKIE, path=page.url("/"))
    return made


def confirm(
    request: Request,
    question: str,
    back: str,
    names: Sequence[str] = (),
    fields: Sequence[tuple[str, str]] = (),
) -> HTMLResponse:
    """Return a page that asks before a change; it holds the form again, with more `fields`."""
    values = {"question": question, "back": back, "names": names, "fields": fields}
    return render(request, "ask.html", values)


def redirect(request: Request, path: str, notice: str = "") -> RedirectResponse:
    """Return the answer to a change: see another page, which shows what was done."""
    root = request.scope.get("root_path", "")
    request.app.state.overviews.forget()
    request.app.state.pauses.forget()
    made = RedirectResponse(f"{root}{path}", 303)
    if notice:
        made.set_cookie(
            NOTICE_COOKIE,
            quote(notice),
            max_age=60,
            path=f"{root}/",
            httponly=True,
            samesite="lax",
        )
    return made


def tone(state: str) -> str:
    """Return how a state looks."""
    return TONES.get(state, "idle")


@cache
def _templates() -> Environment:
    folders = [Path(str(files(package))) for package in named("pages_in")]
    made = Environment(
        loader=FileSystemLoader([one / "templates" for one in (HERE, *folders)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["capitalize_first"] = lambda text: text[:1].upper() + text[1:]
    made.filters["with_code"] = _with_code
    made.globals.update(
        say=say, person=person, step_name=step_name, tone=tone, bytes_in_words=in_words, brief=brief
    )
    made.globals.update(parts_of=_parts_of, more_icons=texts().get("icons", {}))
    return made


def _with_code(text: str) -> Markup:
    """Return a text whose commands, between backticks, are shown as code."""
    parts = enumerate(text.split("`"))
    coded = Markup("<code>{}</code>")
    return Markup("").join(coded.format(one) if n % 2 else escape(one) for n, one in parts)


def _parts_of(place: str) -> list[str]:
    """Return the templates that plug-ins add to a place of a page."""
    return [name for one in plug_ins() for name in one.page_parts.get(place, ())]


@cache
def _version(name: str) -> str:
    return sha256((STATIC / name).read_bytes()).hexdigest()[:12]


def choose_zone(request: Request, response: Response, zone: str) -> bool:
    """Let the browser keep the zone in which times are shown; False for an unknown zone."""
    if zone not in pytz.all_timezones_set:
        return False
    root = request.scope.get("root_path", "")
    response.set_cookie(
        ZONE_COOKIE,
        zone,
        max_age=31_536_000,
        path=f"{root}/",
        secure=request.url.scheme == "https",
        samesite="lax",
    )
    return True


def _zone(asked: str | None) -> str | None:
    named = (asked or "").replace("%2F", "/")
    return named if named in pytz.all_timezones_set else None


def _short(local: datetime, now: datetime) -> str:
    """Return a local time, with its date unless that is today."""
    clock = local.strftime("%H:%M:%S" if local.second else "%H:%M")
    if local.date() == now.date():
        return clock
    same_year = local.year == now.year
    return f"{local.strftime('%a %d %b' if same_year else '%Y-%m-%d')} {clock}"


def _one_unit(span: timedelta) -> str:
    """Return a span in its largest unit: `3 h`."""
    return " ".join(lasting(span).split()[:2])
