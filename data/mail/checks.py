"""Checks of a small app's templates, when its document is saved and before each use.

A child process with limits checks them: a template may need any time to parse and to render.
"""

from collections.abc import Mapping
from typing import Any

from data.mail.templates import PARTS, MailTemplate
from models.errors import Problem
from models.problems import ROOT, path_of
from tasks.bounded import client
from tasks.bounded.limits import Limits, OverLimit, Watch

# The templates of the largest document take 4 s and 100 MiB to parse and to compile.
CHECKING = Limits(memory_mb=128, cpu_s=5, time_s=60)


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
    arguments = {"templates": texts, "settings": dict(settings)}
    call = client.Call("data.mail.child:check", arguments)
    try:
        found = client.run(call, CHECKING, Watch(), lambda _kind, place: at.append(place))
    except RecursionError:
        # Nested too deeply for JSON: the document itself is refused.
        return []
    except OverLimit as error:
        place = path_of(("templates", *at[-1])) if at else ROOT
        return [Problem(place, None, str(error))]
    return [Problem(*one) for one in found]
