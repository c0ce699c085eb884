"""What checks and renders templates, in a child process: it loads Jinja, and no settings."""

from collections.abc import Iterator, Mapping
from dataclasses import astuple
from time import process_time
from typing import Any

from data.mail.templates import PARTS, InvalidTemplate, MailTemplate, problems_in, render
from models.errors import Problem
from models.hints import few_compared, path_of
from tasks.bounded.child import Call

# An answer ends at these; the client asks for the rest.
LARGEST_ANSWER = 8 << 20
ANSWER_S = 1.0


def check(call: Call) -> list[tuple[Any, ...]]:
    """Return every problem of the call's templates: path, value, remedy."""
    given = call.arguments
    own = given["own"]
    with few_compared():
        return [
            astuple(problem)
            for name, texts in given["templates"].items()
            for problem in _of_parts(call, name, texts, given["sample"] | own.get(name, {}))
        ]


def _of_parts(
    call: Call, name: str, texts: Mapping[str, str], sample: Mapping[str, Any]
) -> Iterator[Problem]:
    for part in PARTS:
        if part not in texts:
            continue
        # If a limit ends this process, the client knows where it was.
        call.note("at", [name, part])
        for one in problems_in(part, texts[part], sample):
            remedy = f"{one.remedy} (line {one.line})" if one.line else one.remedy
            yield Problem(path_of(("templates", name, part)), one.value, remedy)


def render_mails(call: Call) -> dict[str, Any]:
    """Return the rendered mails of the first recipients, and why the next one failed, if it did."""
    given = call.arguments
    template = MailTemplate(**given["template"])
    made: list[tuple[Any, ...]] = []
    size = 0
    for own in given["each"]:
        try:
            content = render(template, given["shared"] | own)
        except InvalidTemplate as error:
            return {"mails": made, "failed": [error.where, error.reason, error.line]}
        made.append((content.subject, content.text, content.html))
        size += sum(len(text or "") for text in made[-1])
        if size > LARGEST_ANSWER or process_time() > ANSWER_S:
            break
    return {"mails": made, "failed": None}
