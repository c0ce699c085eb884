"""User-defined mail templates: checked when saved, rendered with each recipient's values.

They are Jinja's, in its sandbox, which bounds neither CPU nor memory: the child process in which
they are rendered does.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from traceback import extract_tb
from typing import Any

from jinja2 import StrictUndefined, Template, meta, nodes
from jinja2.exceptions import TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from models.hints import unknown_name
from tasks.outgoing.mail.message import Content, one_line

MOST_PROBLEMS = 20
LONGEST_OUTPUT = 1_000_000
TOO_DEEP = "is nested too deeply; reduce its nesting"
PARTS = ("subject", "text", "html")


class InvalidTemplate(ValueError):
    """A template is invalid, or cannot be rendered with these values."""

    permanent = True

    def __init__(self, where: str, reason: str, line: int | None = None) -> None:
        self.where = where
        self.reason = reason
        self.line = line
        place = where if line is None else f"{where}, line {line}"
        super().__init__(f"template {place}: {reason}")


@dataclass(frozen=True, slots=True)
class TemplateProblem:
    """One problem of a part of a template: its line, the wrong value, what to write instead."""

    line: int | None
    value: str | None
    remedy: str


@dataclass(frozen=True, slots=True)
class MailTemplate:
    """A stored template: its name, and its three parts as written."""

    name: str
    subject: str
    text: str
    html: str | None = None


class _Unknown(StrictUndefined):
    """A value that does not exist; its error names the nearest one of a mapping."""

    @property
    def _undefined_message(self) -> str:
        known = self._undefined_obj
        if not isinstance(known, Mapping):
            return super()._undefined_message
        name = str(self._undefined_name)
        return f"{name!r} {unknown_name('variable', name, list(known))}"


def _sandbox(*, escapes: bool) -> ImmutableSandboxedEnvironment:
    return ImmutableSandboxedEnvironment(
        autoescape=escapes, undefined=_Unknown, keep_trailing_newline=True
    )


PLAIN, HTML = _sandbox(escapes=False), _sandbox(escapes=True)


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

    A part without unknown names is rendered with the sample, which finds one error.
    """
    try:
        found = list(_undeclared(source, sample))[:MOST_PROBLEMS]
        if not found:
            _render(part, source, sample, "it")
    except InvalidTemplate as error:
        return [TemplateProblem(error.line, None, error.reason)]
    except MemoryError:
        raise
    except Exception as error:  # whatever Jinja and Python's compiler raise for an odd template
        return [TemplateProblem(_line_of(error), None, _reason(error))]
    return found


def _undeclared(source: str, known: Mapping[str, Any]) -> Iterator[TemplateProblem]:
    """Yield each name that is neither in `known` nor set by the template, in order of lines."""
    tree = PLAIN.parse(source)
    unknown = meta.find_undeclared_variables(tree) - known.keys() - PLAIN.globals.keys()
    for node in tree.find_all(nodes.Name):
        if node.name in unknown:
            unknown.remove(node.name)
            yield TemplateProblem(
                node.lineno, node.name, unknown_name("variable", node.name, list(known))
            )


# All recipients of a mail share one compiled template.
@lru_cache(maxsize=32)
def _compiled(part: str, source: str) -> Template:
    return (HTML if part == "html" else PLAIN).from_string(source)


def _render(part: str, source: str, values: Mapping[str, Any], name: str) -> str:
    try:
        pieces, length = [], 0
        for piece in _compiled(part, source).generate(values):
            pieces.append(piece)
            length += len(piece)
            if length > LONGEST_OUTPUT:
                raise ValueError(f"makes over {LONGEST_OUTPUT} characters; shorten it")
        made = "".join(pieces)
        # Neither a mail nor an answer can hold half of a character.
        made.encode()
        return made
    except MemoryError:
        # The limit of the process, which names it.
        raise
    except Exception as error:  # of the sandbox, the compiler, and a filter's own assertions
        raise InvalidTemplate(f"{name} {part}", _reason(error), _line_of(error)) from None


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError | SyntaxError):
        return TOO_DEEP
    if isinstance(error, TemplateSyntaxError):
        return str(error.message)
    return str(error) or type(error).__name__


def _line_of(error: Exception) -> int | None:
    if isinstance(error, TemplateSyntaxError):
        return error.lineno
    lines = [
        frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == "<template>"
    ]
    return lines[-1] if lines else None
