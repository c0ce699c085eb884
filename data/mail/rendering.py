"""Rendering of a template for many recipients, in child processes with limits."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from data.mail.templates import InvalidTemplate, MailTemplate
from tasks.bounded import client
from tasks.bounded.limits import Limits, Watch
from tasks.outgoing.mail.message import Content

RENDERING = Limits(memory_mb=128, cpu_s=5, time_s=60)
# Mails of one child.
AT_ONCE = 500


def rendered(
    template: MailTemplate, shared: Mapping[str, Any], each: Sequence[Mapping[str, Any]]
) -> Iterator[Content]:
    """Yield `template` rendered with the `shared` values and those of `each` recipient, in order.

    Raises InvalidTemplate at the first recipient for whom it cannot be rendered, and OverLimit.
    """
    done = 0
    while done < len(each):
        made = _asked(template, shared, each[done : done + AT_ONCE])
        for subject, text, html in made["mails"]:
            yield Content(subject, text, html)
        if made["failed"] is not None:
            raise InvalidTemplate(*made["failed"])
        done += len(made["mails"])


def _asked(
    template: MailTemplate, shared: Mapping[str, Any], each: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    arguments = {"template": asdict(template), "shared": dict(shared), "each": each}
    call = client.Call("data.mail.child:render_mails", arguments)
    limits = replace(RENDERING, shown=f"template {template.name}")
    made: dict[str, Any] = client.run(call, limits, Watch())
    return made
