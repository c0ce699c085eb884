"""Parse the documents that say what a simulation should show."""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationInfo

from models.document import Document, read_document
from models.errors import InvalidDocument, Problem
from models.parsing import Reading, reading_of
from models.problems import ROOT, line_error, unknown_name
from models.values import Name, UtcInstant, parse_instant, parse_list, parse_whole

MOST = 10_000_000
WANTED = ("sent", "missed", "busiest_minute")

Count = Annotated[int, BeforeValidator(partial(parse_whole, least=0, most=MOST))]


class InvalidExpectations(InvalidDocument):
    """A file of expectations is invalid; paths begin with the index in its list."""


def _sent(value: object, info: ValidationInfo) -> object:
    if isinstance(value, list | tuple):
        zone = reading_of(info).default_zone
        return tuple(sorted(parse_instant(one, zone) for one in parse_list(value)))
    return parse_whole(value, least=0, most=MOST)


class ExpectationModel(Document):
    """What is expected of the occurrences in [from, to), by default of the whole simulation.

    `sent` is their number or the list of their instants, `missed` their number, and
    `busiest_minute` the maximum sent per minute. Without `action`, it covers all actions.
    Instants without an offset are read in the action's zone.
    """

    action: Name | None = None
    from_: UtcInstant | None = Field(None, alias="from")
    to: UtcInstant | None = None
    sent: Annotated[int | tuple[datetime, ...] | None, BeforeValidator(_sent)] = None
    missed: Count | None = None
    busiest_minute: Count | None = None

    @classmethod
    def contradictions(cls, raw: Mapping[str, Any], _reading: Reading, /) -> list[Any]:
        """Return the error of an expectation that expects nothing."""
        if any(key in raw for key in WANTED):
            return []
        remedy = "expects nothing; write sent, missed or busiest_minute"
        return [line_error((), dict(raw), remedy)]


def parse_expectations(
    documents: object, zones: Mapping[str, str], zone: str
) -> list[ExpectationModel]:
    """Return the expectations of a list; raises InvalidExpectations with all problems of all.

    `zones` has each simulated action's zone; `zone` applies to expectations about all actions.
    """
    if not isinstance(documents, list):
        raise InvalidExpectations([Problem(ROOT, documents, "write a list: [{…}, {…}]")])
    found: list[ExpectationModel] = []
    problems: list[Problem] = []
    for number, document in enumerate(documents):
        name = document.get("action") if isinstance(document, Mapping) else None
        reading = Reading(default_zone=zones.get(name, zone) if isinstance(name, str) else zone)
        model, faults = read_document(ExpectationModel, document, reading)
        if isinstance(name, str) and name not in zones:
            remedy = unknown_name("simulated action", name, zones)
            faults = [*faults, Problem("action", name, remedy)]
        problems += [Problem(f"[{number}].{one.path}", one.value, one.remedy) for one in faults]
        if model is not None:
            found.append(model)
    if problems:
        raise InvalidExpectations(problems)
    return found
