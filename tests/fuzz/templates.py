"""Fuzzed templates: each part is refused, or rendered within its bounds."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import process_time

from data.mail.sandbox import LONGEST_OUTPUT
from data.mail.templates import PARTS, InvalidTemplate, MailTemplate, problems_in, render
from data.mail.values import SAMPLE, own_values
from minutebook.steps import Recipient

# A value that no HTML may hold as it is.
MARK = "mb7f3a"
NAMED = {**SAMPLE, **own_values(Recipient("ann", "ann@example.com", f'<{MARK}>"&'), None)}
# That of a child process that checks them.
MOST_CPU_S = 5.0


@contextmanager
def opened() -> Iterator[Callable[[bytes], None]]:
    """Yield the check of templates."""
    yield check


def check(given: bytes) -> None:
    """Check and render `given` as each part of a template."""
    source = given.decode("utf-8", "replace")
    began = process_time()
    for part in PARTS:
        for problem in problems_in(part, source, NAMED):
            assert problem.remedy, part
    try:
        made = render(MailTemplate("it", source, source, source), NAMED)
    except InvalidTemplate as error:
        assert str(error)
    else:
        assert "\n" not in made.subject
        assert max(len(made.text), len(made.html or "")) <= LONGEST_OUTPUT
        assert MARK in source or f"<{MARK}" not in (made.html or ""), "a value is not escaped"
    took = process_time() - began
    assert took < MOST_CPU_S, f"{took:.1f} s of CPU"
