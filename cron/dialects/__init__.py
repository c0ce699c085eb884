"""Rules in the notation of other schedulers, and what to write instead."""

import json
import re
from collections.abc import Callable, Sequence

from cron.dialects.celery import of_celery
from cron.dialects.fields import is_rule
from cron.dialects.quartz import of_quartz
from cron.dialects.spans import of_span
from cron.dialects.spoken import of_speech
from cron.dialects.systemd import of_systemd
from cron.dialects.typography import in_ascii

_ZONE = re.compile(r"(?:cron_)?tz=['\"]?([^\s'\"]+)['\"]?\s+(\S.*)", re.IGNORECASE)
_QUOTED = re.compile(r"""(["'`])(.*)\1""")
_COMMAND = re.compile(r"(@[a-z]+)\s+[^@].*")

# In this order: what one of them reads, no later one reads otherwise.
READERS: tuple[Callable[[str], str | None], ...] = (
    of_quartz,
    of_celery,
    of_span,
    of_speech,
    of_systemd,
)


def in_another_notation(text: str, nicknames: Sequence[str]) -> str | None:
    """Return what is wrong with a rule, and what to write; None for no notation that is known."""
    return _with_zone(text) or _in_quotes(text) or _with_command(text, nicknames) or _foreign(text)


def in_other_characters(text: str, nicknames: Sequence[str]) -> str | None:
    """Return what to write for a rule with dashes, blanks or digits of a word processor."""
    plain = in_ascii(text)
    if plain is None:
        return None
    if is_rule(plain.split()) or plain in nicknames:
        return f"contains a character no rule has; write '{plain}'"
    found = in_another_notation(plain, nicknames)
    return None if found is None else f"contains a character no rule has, and {found}"


def _foreign(text: str) -> str | None:
    lowered = " ".join(text.lower().split())
    return next((found for read in READERS if (found := read(lowered)) is not None), None)


def _with_zone(text: str) -> str | None:
    found = _ZONE.fullmatch(text)
    if found is None:
        return None
    zone, rule = found.groups()
    if not is_rule(rule.lower().split()) and not rule.startswith("@"):
        return f'names a zone; write only the rule, and "timezone": "{zone}" beside it'
    if rule.lower().startswith("@every"):
        every = of_span(rule.lower())
        return None if every is None else f"names a zone without effect, and {every}"
    return f"names a zone; write {json.dumps({'cron_rule': rule, 'timezone': zone})}"


def _in_quotes(text: str) -> str | None:
    found = _QUOTED.fullmatch(text)
    if found is None or not is_rule(found[2].lower().split()):
        return None
    return f"has quotes of its own; write '{found[2]}'"


def _with_command(text: str, nicknames: Sequence[str]) -> str | None:
    found = _COMMAND.fullmatch(text.lower())
    if found is not None and found[1] in nicknames:
        return f"holds a command; write '{found[1]}', and make the command a step"
    return None
