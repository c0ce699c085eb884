"""What somebody's code raised, as text: light, for workers of ours and of the user's own."""


def text_of(error: BaseException) -> str:
    """Return an error as text: its kind and what it says, if it can say it."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # somebody else's __str__
        return type(error).__name__
