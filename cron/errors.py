"""The error of this package, and how it quotes an input."""

LONGEST_QUOTE = 60


class InvalidRule(ValueError):
    """A rule or zone is refused; the text says what, why, and what to write instead.

    `field` is 'minute', 'hour', 'day of month', 'month', 'day of week', 'rule' or 'zone'.
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(field, problem)
        self.field = field
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.field} {self.problem}"


def quote(text: str) -> str:
    """Return `text` in quotes, in ASCII, truncated: an error never repeats a long input."""
    shown = ascii(text[: LONGEST_QUOTE + 1])[1:-1]
    return f"'{shown}'" if len(shown) <= LONGEST_QUOTE else f"'{shown[: LONGEST_QUOTE - 3]}...'"
