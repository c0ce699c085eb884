"""Errors as text, for Minutebook's workers and the user's."""

from __future__ import annotations


def text_of(error: BaseException) -> str:
    """Return an error's class and message, without the message if it raises an error."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # a user's __str__
        return type(error).__name__
