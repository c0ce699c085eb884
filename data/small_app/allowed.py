"""What sources name beyond their small app: of a restricted one it is refused."""

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from data.settings import settings_in
from data.small_app.document import data_in
from data.small_app.sources import SourceModel, warnings_of_domains
from minutebook.readers import registered_readers
from models.errors import Problem
from models.tenant.document import SmallAppModel
from models.trust import Trust, not_for_restricted
from models.values.references import is_reference
from runtime.config import Settings


def problems_of_sources(model: SmallAppModel, trust: Trust) -> Iterator[Problem]:
    """Yield a problem for each connection, reader and secret, and each file of another folder."""
    if trust.is_trusted:
        return
    for name, domain in data_in(model).domains.items():
        yield from _of_source(domain.source, f"domains.{name}.source", model.name)


def app_warnings(settings: Settings, model: SmallAppModel) -> list[str]:
    """Return one sentence for each unknown connection or reader, and for each exposed secret."""
    domains = data_in(model).domains
    return warnings_of_domains(domains, settings_in(settings).connections, registered_readers())


def _of_source(source: SourceModel, path: str, app: str) -> Iterator[Problem]:
    if source.file is not None and not is_beneath(source.file, app):
        yield Problem(f"{path}.file", source.file, outside(app))
    named = {
        "connection": source.connection,
        "reader": source.reader,
        **dict(_references(source)),
    }
    for key, name in named.items():
        if name is not None:
            yield Problem(f"{path}.{key}", name, not_for_restricted(app))


def _references(source: SourceModel) -> Iterator[tuple[str, str]]:
    if is_reference(source.url):
        yield "url", str(source.url)
    texts: tuple[tuple[str, Mapping[str, Any] | None], ...] = (
        ("headers", source.headers),
        ("parameters", source.parameters),
    )
    for key, values in texts:
        for name, value in (values or {}).items():
            if is_reference(value):
                yield f"{key}.{name}", value


def is_beneath(file: str, folder: str) -> bool:
    """Return whether a path, relative to the data root, lies in a folder there."""
    parts = PurePosixPath(file).parts
    return ".." not in parts and len(parts) > 1 and parts[0] == folder


def outside(app: str) -> str:
    """Return the error of a restricted small app that names a file of another folder."""
    return (
        f"is outside the folder of this restricted small app; write a path that begins with {app}/"
    )
