"""Templates in child processes with limits: check them, and render mails.

A template may need any time and memory to parse and to render.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from data.mail.templates import PARTS, InvalidTemplate, MailTemplate
from data.mail.values import NEW_DATA, SAMPLE_NEWS, sample_of
from models.errors import Problem
from models.hints import ROOT, path_of
from tasks.bounded import client
from tasks.bounded.limits import Limits, OverLimit, Watch
from tasks.outgoing.mail.message import Content

CHILD = "data.children.templates"
# The templates of the largest document take 4 s and 100 MiB to parse and to compile.
LIMITS = Limits(memory_mb=128, cpu_s=5, time_s=60)
# Mails of one child.
AT_ONCE = 500


def template_problems(document: object) -> list[Problem]:
    """Return every problem of the templates of a document, which may have other problems."""
    templates = document.get("templates") if isinstance(document, Mapping) else None
    if not isinstance(templates, Mapping):
        return []
    settings = document.get("settings") if isinstance(document, Mapping) else None
    known = settings if isinstance(settings, Mapping) else {}
    texts = {
        str(name): {part: text for part in PARTS if isinstance(text := template.get(part), str)}
        for name, template in templates.items()
        if isinstance(template, Mapping)
    }
    return _problems_of(texts, known)


def problems_of_template(template: MailTemplate, settings: Mapping[str, Any]) -> list[Problem]:
    """Return every problem of a stored template; `settings` are those of its small app."""
    texts = {part: text for part in PARTS if (text := getattr(template, part)) is not None}
    return _problems_of({template.name: texts}, settings)


def _problems_of(
    texts: Mapping[str, Mapping[str, str]], settings: Mapping[str, Any]
) -> list[Problem]:
    if not any(texts.values()):
        return []
    at: list[Any] = []
    arguments = {
        "templates": texts,
        "sample": sample_of("", dict(settings)),
        "own": {NEW_DATA: SAMPLE_NEWS},
    }
    call = client.Call(f"{CHILD}:check", arguments)
    try:
        found = client.run(call, LIMITS, Watch(), lambda _kind, place: at.append(place))
    except RecursionError:
        # Nested too deeply for JSON: the document itself is refused.
        return []
    except OverLimit as error:
        place = path_of(("templates", *at[-1])) if at else ROOT
        return [Problem(place, None, str(error))]
    return [Problem(*one) for one in found]


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
    call = client.Call(f"{CHILD}:render_mails", arguments)
    limits = replace(LIMITS, shown=f"template {template.name}")
    made: dict[str, Any] = client.run(call, limits, Watch())
    return made
