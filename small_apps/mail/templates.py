"""Templates of an admin's: checked when they are saved, rendered with each recipient's values.

A template knows `{{ }}`, `{% if %}` and one level of `{% for %}`; it calls nothing, and only
filters that cannot multiply text are there.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jinja2 import Template, TemplateError, nodes
from jinja2.exceptions import TemplateSyntaxError, UndefinedError
from jinja2.meta import find_undeclared_variables

from small_apps.mail.grammar import Fault, refusals, unknown_variables
from small_apps.mail.message import Content, one_line
from small_apps.mail.sandbox import HTML, PLAIN, Counted, Sandbox, TooLong, generated

LONGEST_TEMPLATE = 100_000
PARTS = ("subject", "text", "html")


class InvalidTemplate(ValueError):
    """A template cannot be used, or not with these values; the text says where and why."""

    def __init__(self, where: str, reason: str, line: int | None = None) -> None:
        self.fault = Fault(line or 0, None, reason)
        place = where if line is None else f"{where}, line {line}"
        super().__init__(f"template {place}: {reason}")


@dataclass(frozen=True, slots=True)
class MailTemplate:
    """A stored template: its name, and its three parts as they were written."""

    name: str
    subject: str
    text: str
    html: str | None = None


def render(template: MailTemplate, values: Mapping[str, Any]) -> Content:
    """Return what `template` says with `values`. Raises InvalidTemplate.

    The HTML part escapes every value; the subject is one line.
    """
    html = None
    if template.html is not None:
        html = _render("html", template.html, values, template.name)
    return Content(
        subject=one_line(_render("subject", template.subject, values, template.name)),
        text=_render("text", template.text, values, template.name),
        html=html,
    )


def check(template: MailTemplate) -> set[str]:
    """Return the names that the template reads. Raises InvalidTemplate when it cannot be used."""
    names: set[str] = set()
    parts = {"subject": template.subject, "text": template.text, "html": template.html or ""}
    for part, source in parts.items():
        where = f"{template.name} {part}"
        tree = _parse(PLAIN, source, where)
        _compile(PLAIN, tree, where)
        names |= find_undeclared_variables(tree)
    return names


def faults_of(part: str, source: str, sample: Mapping[str, Any]) -> list[Fault]:
    """Return every fault of a part (`subject`, `text`, `html`); `sample` has all values there are.

    A part that looks sound is rendered with the sample, which finds what only shows then.
    """
    try:
        tree = _tree(PLAIN, source, part)
        with _bounded_depth(part):
            found = [*refusals(tree), *unknown_variables(tree, sample)]
        if not found:
            _render(part, source, sample, "it")
    except InvalidTemplate as error:
        return [error.fault]
    return sorted(found, key=lambda fault: fault.line)


def _tree(sandbox: Sandbox, source: str, where: str) -> nodes.Template:
    if len(source) > LONGEST_TEMPLATE:
        text = f"has {len(source)} characters; write at most {LONGEST_TEMPLATE}"
        raise InvalidTemplate(where, text)
    with _bounded_depth(where):
        try:
            return sandbox.parse(source)
        except TemplateSyntaxError as error:
            raise InvalidTemplate(where, str(error.message), error.lineno) from None


def _parse(sandbox: Sandbox, source: str, where: str) -> nodes.Template:
    tree = _tree(sandbox, source, where)
    with _bounded_depth(where):
        fault = next(refusals(tree), None)
        if fault is not None:
            raise InvalidTemplate(where, fault.remedy, fault.line)
        Counted(len(source)).visit(tree)
    return tree


def _compile(sandbox: Sandbox, tree: nodes.Template, where: str) -> Template:
    with _bounded_depth(where):
        try:
            return sandbox.from_string(tree)
        except TemplateSyntaxError as error:
            # A test that nobody knows is found only now.
            raise InvalidTemplate(where, str(error.message), error.lineno) from None


@contextmanager
def _bounded_depth(where: str) -> Iterator[None]:
    try:
        yield
    except (RecursionError, MemoryError, SyntaxError):
        # What Jinja's recursion bears, Python's compiler may still refuse.
        raise InvalidTemplate(where, "is nested too deeply; write it flatter") from None


# Each recipient of a mail has the same template: it is compiled once.
@lru_cache(maxsize=32)
def _compiled(part: str, source: str, name: str) -> Template:
    sandbox = HTML if part == "html" else PLAIN
    where = f"{name} {part}"
    return _compile(sandbox, _parse(sandbox, source, where), where)


def _render(part: str, source: str, values: Mapping[str, Any], name: str) -> str:
    where = f"{name} {part}"
    compiled = _compiled(part, source, name)
    try:
        with _bounded_depth(where):
            return generated(compiled, values)
    except UndefinedError as error:
        known = ", ".join(sorted(values))
        raise InvalidTemplate(where, f"{error.message}; known: {known}") from None
    except (
        TooLong, TemplateError, TypeError, ValueError, ArithmeticError, LookupError,
    ) as error:  # fmt: skip
        if isinstance(error, InvalidTemplate):
            raise
        raise InvalidTemplate(where, str(error)) from None
