"""Check the templates of a small app: when its document is saved, and again when they are used."""

from collections.abc import Iterator, Mapping
from typing import Any

from models.errors import Problem
from models.problems import path_of
from small_apps.document import InvalidSmallApp, SmallAppModel, parse_small_app
from small_apps.mail.grammar import Fault
from small_apps.mail.templates import PARTS, MailTemplate, faults_of
from small_apps.mail.values import sample_of


def checked_small_app(document: object) -> SmallAppModel:
    """Return the small app that `document` writes, its templates checked.

    Raises InvalidSmallApp with all problems, those of templates included.
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
    """Return every problem of the texts of a document's templates, whatever else is wrong in it."""
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
    """Return every problem of a stored template of a small app with these settings."""
    parts = {part: getattr(template, part) for part in PARTS}
    return list(_of_parts(template.name, parts, settings))


def _of_parts(
    name: str, parts: Mapping[str, object], settings: Mapping[str, Any]
) -> Iterator[Problem]:
    for part in PARTS:
        source = parts.get(part)
        if not isinstance(source, str):
            continue
        for fault in faults_of(part, source, sample_of(name, settings)):
            yield Problem(path_of(("templates", name, part)), fault.value, _remedy(fault))


def _remedy(fault: Fault) -> str:
    return f"{fault.remedy} (line {fault.line})" if fault.line else fault.remedy
