"""Minutebook's own steps, which each process knows; their work is imported when one runs."""

from functools import cache
from importlib import import_module

from minutebook import steps
from minutebook.steps import Steps
from runtime.plug_ins import named

# Named, not imported: the daemon reads the declarations and reaches no work.
MODULES = (
    *("tasks.steps.celery_task", "tasks.steps.job"),
    *("tasks.steps.command", "tasks.steps.maintenance"),
)


@cache
def built_in_steps() -> Steps:
    """Return Minutebook's own steps by name, in the order in which they run."""
    for module in (*MODULES, *named("steps")):
        import_module(module)
    return dict(sorted(steps._built_in.items(), key=lambda item: item[1].order))
