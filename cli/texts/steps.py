"""Steps in words."""

from collections.abc import Iterator

from cli.render import Line, rows_of
from services.steps import Steps


def _steps(found: Steps) -> Iterator[Line]:
    yield rows_of(found.steps, "name weight keys=PARAMETERS origin=FROM")
    if found.failures:
        yield "minutebook doctor shows what the workers could not load"


FORMS = {Steps: _steps}
