"""What `init` wrote, in words."""

from collections.abc import Iterator

from views.starting import ACTION, Started


def _started(made: Started) -> Iterator[str]:
    for one in made.root:
        yield f"wrote {one.path}" if one.is_new else f"left {one.path} as it was"
    yield f"next: minutehand action check {ACTION}; minutehand action apply {ACTION}; minutehand up"


FORMS = {Started: _started}
