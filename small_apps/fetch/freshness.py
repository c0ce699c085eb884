"""Has a source changed since its snapshot was made? When in doubt, yes."""

from collections.abc import Mapping

from runtime.config import Settings
from small_apps.failures import SourceFailed
from small_apps.fetch import downloads
from small_apps.fetch.downloads import Answer
from small_apps.fetch.sources import Source, file_state, file_validators, resolve_file, wanted_of


def probe(source: Source, settings: Settings) -> dict[str, str] | None:
    """Return what tells the source's present state from others; None when that is unknown.

    Of a URL one byte is asked for; a query and a reader cannot tell. A probe that fails is no
    failure: the data are read instead, and if they cannot be, that says why.
    """
    if source.sql is not None or source.reader is not None:
        return None
    if source.url is not None:
        answer = _asked(source, settings)
        if answer is None or not answer.validators:
            return None
        return {"source": source.key, **answer.validators}
    try:
        file = resolve_file(settings.effective_data_root, str(source.file))
        return file_validators(source, file_state(file, source.shown))
    except SourceFailed:
        return None


def _asked(source: Source, settings: Settings) -> Answer | None:
    try:
        return downloads.probe(wanted_of(source, settings), settings.fetch)
    except SourceFailed:
        return None


def is_unchanged(known: Mapping[str, str], probed: Mapping[str, str] | None) -> bool:
    """Return whether every validator is there, and the same as when the snapshot was made."""
    return bool(probed) and dict(known) == probed
