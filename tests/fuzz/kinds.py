"""The kinds of input that are fuzzed, and the check of each.

A check takes bytes, hands them to the real code, and fails if a promise does not hold.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from tests.fuzz import cron_rules, documents, smtp_answers, sources, templates

Check = Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of input: `opened` yields its check.

    `examples` are as many as take a second or two. `is_guided`: the code is pure Python, so that
    coverage can guide the mutation.
    """

    name: str
    opened: Callable[[], AbstractContextManager[Check]]
    examples: int
    is_guided: bool = False


KINDS = {
    one.name: one
    for one in (
        Kind("documents", documents.opened, 25, is_guided=True),
        Kind("templates", templates.opened, 6),
        Kind("cron_rules", cron_rules.opened, 150, is_guided=True),
        Kind("sources", sources.opened, 12),
        Kind("smtp_answers", smtp_answers.opened, 60),
    )
}
