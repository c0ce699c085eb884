"""The reader of a feed, as a user of GNAT would bring it along: loaded by SCHED_STEP_MODULES."""

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.request import urlopen

from pydantic import BaseModel

import minutebook

BEGINNING = "2024-01-01T00:00:00Z"


class Parameters(BaseModel):
    """Where the collection is."""

    collection: str


def indicator(row: Mapping[str, Any], context: minutebook.StepContext) -> dict[str, Any]:
    """Return a row with the number of the run that read it."""
    return {"id": row["id"], "run": context.run_number}


@minutebook.reader("indicators", mapper=indicator, parameters=Parameters)
def indicators(context: minutebook.StepContext) -> Iterator[dict[str, Any]]:
    """Yield the objects that were added since the last success."""
    assert isinstance(context.parameters, Parameters)
    since = context.last_success_iso or BEGINNING
    with urlopen(f"{context.parameters.collection}?added_after={since}") as answer:
        yield from json.load(answer)["objects"]
