"""What a small app's sources name that the installation did not grant to it."""

from collections.abc import Iterator, Mapping
from typing import Any

from minutebook.grants import Grants, Kind, not_granted
from models.errors import Problem
from models.references import is_reference
from models.tenant.document import SmallAppModel
from models.tenant.sources import SourceModel


def problems_of_sources(model: SmallAppModel, grants: Grants) -> Iterator[Problem]:
    """Yield a problem for each file, connection, reader and secret that is not granted."""
    for name, domain in model.domains.items():
        yield from _of_source(domain.source, f"domains.{name}.source", model.name, grants)


def _of_source(source: SourceModel, path: str, app: str, grants: Grants) -> Iterator[Problem]:
    named: list[tuple[str, Kind, str | None]] = [
        ("file", "files", source.file),
        ("connection", "connections", source.connection),
        ("reader", "readers", source.reader),
    ]
    named += [(key, "env", text.removeprefix("env:")) for key, text in _references(source)]
    for key, kind, name in named:
        if name is not None and not grants.allows(kind, name):
            yield Problem(f"{path}.{key}", name, not_granted(kind, name, app))


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
