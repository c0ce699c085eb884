"""Steps in words."""

from collections.abc import Iterator

from cli.render import Line, rows_of
from services.steps import Steps

COLUMNS = {"name": "NAME", "weight": "WEIGHT", "keys": "PARAMETERS", "origin": "FROM"}


def _steps(found: Steps) -> Iterator[Line]:
    yield rows_of(found.steps, COLUMNS)
    if found.failures:
        yield "minutebook doctor shows what the workers could not load"


FORMS = {Steps: _steps}
