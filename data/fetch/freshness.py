"""Probes that find whether a source changed since its snapshot; uncertain means changed."""

import os
from collections.abc import Mapping

from data.beneath import opened_beneath
from data.failures import SourceFailed
from data.fetch import downloads
from data.fetch.downloads import Answer
from data.fetch.sources import Source, allowed_place, file_validators, wanted_of
from data.settings import Settings


def probe(source: Source, settings: Settings) -> dict[str, str] | None:
    """Return the validators of the source's current state; None if they are unknown.

    A URL is probed by its first byte; a query and a reader have no validators. A failed probe
    returns None: the data are read instead, and that read reports the error.
    """
    if source.sql is not None or source.reader is not None:
        return None
    if source.url is not None:
        answer = _asked(source, settings)
        if answer is None or not answer.validators:
            return None
        return {"source": source.key, **answer.validators}
    try:
        with opened_beneath(*allowed_place(str(source.file), settings)) as stream:
            return file_validators(source, os.fstat(stream.fileno()))
    except SourceFailed:
        return None


def _asked(source: Source, settings: Settings) -> Answer | None:
    try:
        return downloads.probe(wanted_of(source, settings), settings.fetch)
    except SourceFailed:
        return None


def is_unchanged(known: Mapping[str, str], probed: Mapping[str, str] | None) -> bool:
    """Return whether there are validators, all equal to those of the snapshot."""
    return bool(probed) and dict(known) == probed
