"""Test your own followed tasks and steps, without the rest of Minutebook.

Followed tasks need nothing but the client; `make_context` needs pydantic, as steps do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minutebook.testing.operations import Reported, TestOperation, make_operation, run_followed

if TYPE_CHECKING:
    from minutebook.testing.contexts import TestContext, make_context

__all__ = [
    "Reported",
    "TestContext",
    "TestOperation",
    "make_context",
    "make_operation",
    "run_followed",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'minutebook.testing' has no attribute {name!r}")
    from minutebook.testing import contexts

    return getattr(contexts, name)
