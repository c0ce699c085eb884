"""The kinds of input that are fuzzed, and the check of each.

A check takes bytes, hands them to the real code, and fails if a promise does not hold.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from tests.fuzz import cron_rules, documents, smtp_answers, sources, templates

Check = Callable[[bytes], None]
Opened = Callable[[], AbstractContextManager[Check]]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of input: `opened` yields its check.

    `examples` are as many as take a second or two. `is_guided`: the code is pure Python, so that
    coverage can guide the mutation.
    """

    name: str
    opened: Opened
    examples: int
    is_guided: bool = False


def _pure(check: Check) -> Opened:
    """Return what opens a check that needs nothing."""
    return lambda: nullcontext(check)


KINDS = {
    one.name: one
    for one in (
        Kind("documents", _pure(documents.check), 25, is_guided=True),
        Kind("templates", _pure(templates.check), 6),
        Kind("cron_rules", _pure(cron_rules.check), 150, is_guided=True),
        Kind("sources", sources.opened, 12),
        Kind("smtp_answers", smtp_answers.opened, 60),
    )
}
