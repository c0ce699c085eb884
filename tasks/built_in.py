"""Minutebook's own steps, which each process knows; their work is imported when one runs."""

from functools import cache

from minutebook import steps
from minutebook.steps import Steps
from runtime.plug_ins import declare_steps


@cache
def built_in_steps() -> Steps:
    """Return Minutebook's own steps by name, in the order in which they run."""
    declare_steps()
    return dict(sorted(steps._built_in.items(), key=lambda item: item[1].order))
