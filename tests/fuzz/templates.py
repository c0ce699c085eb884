"""Fuzzed templates: each part is refused, or rendered within its bounds."""

from data.mail.in_child import LIMITS, problems_of_template
from data.mail.templates import MailTemplate
from runtime.clock import monotonic


def check(given: bytes) -> None:
    """Check `given` as each part of a template, in a child process."""
    source = given.decode("utf-8", "replace")
    began = monotonic()
    for problem in problems_of_template(MailTemplate("it", source, source, source), {}):
        assert problem.remedy
        assert "ended its process" not in problem.remedy, problem.remedy
    took = monotonic() - began
    assert took < LIMITS.time_s, f"{took:.1f} s"
