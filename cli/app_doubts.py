"""What an admin should know of a small app that was saved: names that nobody knows yet."""

from cli.invocation import Invocation
from minutehand.readers import registered_readers
from small_apps.document import SmallAppModel
from small_apps.document.sources import warnings_of_domains


def doubts(invocation: Invocation, model: SmallAppModel) -> list[str]:
    """Return one sentence for each connection and reader that this installation does not know."""
    # Its modules register the readers.
    failed = invocation.registry.failed
    known = invocation.settings.connections
    told = warnings_of_domains(model.domains, known, registered_readers())
    return told + [f"step module {name} cannot be imported: {why}" for name, why in failed.items()]
