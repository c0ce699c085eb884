"""Checks of a small app's templates, when its document is saved and before each use."""

from collections.abc import Iterator, Mapping
from typing import Any

from models.errors import Problem
from models.problems import path_of
from small_apps.document import InvalidSmallApp, SmallAppModel, parse_small_app
from small_apps.mail.templates import PARTS, MailTemplate, problems_in
from small_apps.mail.values import sample_of


def checked_small_app(document: object) -> SmallAppModel:
    """Return the small app of `document`, its templates checked.

    Raises InvalidSmallApp with all problems, including those of templates.
    """
    of_templates = template_problems(document)
    try:
        app = parse_small_app(document)
    except InvalidSmallApp as error:
        raise InvalidSmallApp([*error.problems, *of_templates]) from None
    if of_templates:
        raise InvalidSmallApp(of_templates)
    return app


def template_problems(document: object) -> list[Problem]:
    """Return every problem of the templates of a document, which may have other problems."""
    templates = document.get("templates") if isinstance(document, Mapping) else None
    if not isinstance(templates, Mapping):
        return []
    settings = document.get("settings") if isinstance(document, Mapping) else None
    known = settings if isinstance(settings, Mapping) else {}
    return [
        problem
        for name, template in templates.items()
        if isinstance(template, Mapping)
        for problem in _of_parts(str(name), template, known)
    ]


def problems_of_template(template: MailTemplate, settings: Mapping[str, Any]) -> list[Problem]:
    """Return every problem of a stored template; `settings` are those of its small app."""
    parts = {part: getattr(template, part) for part in PARTS}
    return list(_of_parts(template.name, parts, settings))


def _of_parts(
    name: str, parts: Mapping[str, object], settings: Mapping[str, Any]
) -> Iterator[Problem]:
    for part in PARTS:
        source = parts.get(part)
        if not isinstance(source, str):
            continue
        for one in problems_in(part, source, sample_of(name, settings)):
            remedy = f"{one.remedy} (line {one.line})" if one.line else one.remedy
            yield Problem(path_of(("templates", name, part)), one.value, remedy)
