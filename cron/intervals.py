"""Spans as ISO 8601 texts, as `every` reads them."""

LONGEST_DAYS = 3660

UNIT_S = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
_LETTERS = ((86_400, "P{}D"), (3_600, "PT{}H"), (60, "PT{}M"), (1, "PT{}S"))


def interval_of(seconds: int) -> str | None:
    """Return a span in its largest whole unit, such as `PT90M`; None for no legal interval."""
    if not 1 <= seconds <= LONGEST_DAYS * 86_400:
        return None
    size, text = next((size, text) for size, text in _LETTERS if seconds % size == 0)
    return text.format(seconds // size)
