"""The text of a notice sent as a mail or to a chat: what it reports, and what to run."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from models.notices import NoticeKind
from tasks.outgoing.mail.message import Content

# The keys of a notice that are no text of their own.
_LEFT_OUT = frozenset({"kind", "action_uid", "test", "event"})
_HEADINGS = {NoticeKind.FINDING_BEGAN: "ALERT: ", NoticeKind.FINDING_ENDED: "RESOLVED: "}


def content_of(told: Mapping[str, Any]) -> Content:
    """Return subject and text of the message that reports what a notice tells."""
    found = [one["text"] for one in told.get("findings", ())]
    what = found[0] if found else f"{told['state'].upper()}: {told['action']}"
    more = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
    heading = _HEADINGS.get(told["kind"], "")
    return Content(f"[minutebook] {heading}{what}{more}", "\n".join(_lines(told)) + "\n")


def _lines(told: Mapping[str, Any]) -> Iterator[str]:
    for key, value in told.items():
        if value and key not in _LEFT_OUT and not isinstance(value, list):
            yield f"{key.replace('_', ' '):<18} {value}"
    for one in told.get("findings", ()):
        yield from ("", f"{one['text']}, since {one['since']}", f"  {one['remedy']}")
    for title, lines in _lists(told):
        yield from ("", title, *(f"  {one}" for one in lines))


def _lists(told: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Yield what a notice lists, and what to run, by what it is for."""
    if steps := told.get("steps"):
        yield "Steps:", [_step(one) for one in steps]
    if lines := told.get("log"):
        yield "Last log lines:", lines
    if most := told.get("most_missed"):
        yield "Most missed:", [f"{one['missed']:>7,}  {one['name']}" for one in most]
    if "action" not in told:
        missed = ["run list --all-apps --state missed"] if most else []
        yield "To see more:", [f"minutebook {one}" for one in ("status", *missed)]
        return
    action = shlex.quote(told["action"])
    command = f"minutebook --app {shlex.quote(told['small_app'])}"
    if told.get("missed") and told.get("event"):
        listing = f"{command} run list --action {action} --state missed"
        yield "To run what was missed:", [listing, f"{command} run retry ID..."]
    elif told.get("missed"):
        span = f"--from {told['first_at']} --to {told['last_at']}"
        yield "To run what was missed:", [f"{command} backfill {action} {span}"]
    id = told.get("operation_id")
    shown = [f"{command} run show {id}"] if id else []
    yield "To see more:", [*shown, f"{command} action show {action}"]


def _step(one: Mapping[str, Any]) -> str:
    why = one.get("error") or one.get("message") or ""
    return f"{one['name']:<16} {one['state']:<9} {why}".rstrip()
