"""User-defined mail templates: checked when saved, rendered with each recipient's values.

A template has `{{ }}`, `{% if %}` and one level of `{% for %}`, no calls, and only filters that
cannot multiply text.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from typing import Any

from jinja2 import Template, nodes
from jinja2.exceptions import TemplateSyntaxError, UndefinedError

from data.mail.grammar import TemplateProblem, forbidden, unknown_variables
from data.mail.sandbox import HTML, PLAIN, Sandbox, generated
from data.small_app.document import LONGEST_TEMPLATE
from tasks.outgoing.mail.message import Content, one_line

MOST_PROBLEMS = 20
TOO_DEEP = "is nested too deeply; reduce its nesting"
PARTS = ("subject", "text", "html")


class InvalidTemplate(ValueError):
    """A template is invalid, or cannot be rendered with these values."""

    permanent = True

    def __init__(self, where: str, reason: str, line: int | None = None) -> None:
        self.where = where
        self.line = line
        self.problem = TemplateProblem(line or 0, None, reason)
        place = where if line is None else f"{where}, line {line}"
        super().__init__(f"template {place}: {reason}")


@dataclass(frozen=True, slots=True)
class MailTemplate:
    """A stored template: its name, and its three parts as written."""

    name: str
    subject: str
    text: str
    html: str | None = None


def render(template: MailTemplate, values: Mapping[str, Any]) -> Content:
    """Return `template` rendered with `values`. Raises InvalidTemplate.

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


def problems_in(part: str, source: str, sample: Mapping[str, Any]) -> list[TemplateProblem]:
    """Return the problems of a part (`subject`, `text`, `html`); `sample` holds all variables.

    A part without problems is rendered with the sample, to find errors of rendering.
    """
    try:
        tree = _tree(PLAIN, source, part)
        with _bounded_depth(part):
            every = chain(forbidden(tree), unknown_variables(tree, sample))
            found = list(islice(every, MOST_PROBLEMS))
        if not found:
            _render(part, source, sample, "it")
    except InvalidTemplate as error:
        return [error.problem]
    return sorted(found, key=lambda problem: problem.line)


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
        problem = next(forbidden(tree), None)
        if problem is not None:
            raise InvalidTemplate(where, problem.remedy, problem.line or None)
    return tree


def _compile(sandbox: Sandbox, tree: nodes.Template, where: str) -> Template:
    with _bounded_depth(where):
        try:
            return sandbox.from_string(tree)
        except TemplateSyntaxError as error:
            # Jinja finds an unknown test only when compiling.
            raise InvalidTemplate(where, str(error.message), error.lineno) from None


@contextmanager
def _bounded_depth(where: str) -> Iterator[None]:
    try:
        yield
    except (InvalidTemplate, TemplateSyntaxError):
        raise
    except (RecursionError, MemoryError, SyntaxError):
        # Python's compiler has a lower limit than Jinja's parser.
        raise InvalidTemplate(where, TOO_DEEP) from None
    except Exception as error:  # whatever else Jinja raises for an odd template
        raise InvalidTemplate(where, _told(error)) from None


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


_HALF = re.compile("[\ud800-\udfff]")


# All recipients of a mail share one compiled template.
@lru_cache(maxsize=32)
def _compiled(part: str, source: str, name: str) -> Template:
    sandbox = HTML if part == "html" else PLAIN
    where = f"{name} {part}"
    return _compile(sandbox, _parse(sandbox, source, where), where)


def _render(part: str, source: str, values: Mapping[str, Any], name: str) -> str:
    where = f"{name} {part}"
    compiled = _compiled(part, source, name)
    try:
        made = generated(compiled, values)
    except UndefinedError as error:
        known = ", ".join(sorted(values))
        raise InvalidTemplate(where, f"{error.message}; known: {known}") from None
    except RecursionError:
        raise InvalidTemplate(where, TOO_DEEP) from None
    except MemoryError:
        # The limit of the process, which names it.
        raise
    except Exception as error:  # of the sandbox, and a filter's own assertions
        raise InvalidTemplate(where, str(error) or _told(error)) from None
    half = _HALF.search(made)
    if half is not None:
        # Neither a mail nor an answer can hold it.
        raise InvalidTemplate(where, f"makes half of a character, \\u{ord(half[0]):04x}; remove it")
    return made
