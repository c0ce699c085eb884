"""The documents of jobs: what is given of a job, and the action that is made of it."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from pydantic import (
    AwareDatetime,
    Field,
    JsonValue,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from models.action.intervals import END
from models.errors import InvalidDocument, Problem, Refused
from models.job import JOB, id_of
from models.problems import problems_of
from models.values import ActionName, Url, format_instant
from services.files import Document, located
from services.view import RequestBody

EVERY_S = 300
MOST_S = 3660 * 86_400
SECOND = timedelta(seconds=1)


class NewJob(RequestBody):
    """A job as a request describes it, in the form in which jobs are listed."""

    url: Url = Field(description="Of its work.")
    interval_s: int = Field(EVERY_S, ge=1, le=MOST_S, strict=True, description="Seconds.")
    meta: dict[str, JsonValue] = Field(default_factory=dict, description="What its worker gets.")
    from_end: bool | None = Field(
        None, strict=True, description="Count from the end of its last run; else it has a grid."
    )
    jitter_s: int | None = Field(
        None, ge=0, le=MOST_S, strict=True, description="Seconds within which its runs are moved."
    )
    jitter_each: bool | None = Field(
        None, strict=True, description="Draw the jitter for each run; else it is the job's own."
    )
    id: str | None = Field(None, description="If it is given, that of its URL.")
    action: ActionName | None = Field(
        None, description="The name of its action; its id if it is not given."
    )
    active: bool | None = Field(
        None, strict=True, description="Whether it is enabled; a stored job stays as it is without."
    )
    next_run_at: AwareDatetime | None = Field(
        None, description="When a new job runs first; without it, first runs are spread."
    )
    last_state: str | None = Field(None, description="Ignored.")

    @field_validator("interval_s", mode="before")
    @classmethod
    def _is_an_interval(cls, value: object) -> object:
        if value is None:
            raise ValueError(
                "is null: its action has another rule; "
                "move it by `minutebook export json` and `minutebook action apply`"
            )
        return value

    @field_validator("id")
    @classmethod
    def _is_of_its_url(cls, value: str | None, info: ValidationInfo) -> str | None:
        url = info.data.get("url")
        if value is not None and url is not None and value != id_of(url):
            raise ValueError(f'is not the id of its URL; write "{id_of(url)}", or leave it out')
        return value

    @property
    def name(self) -> str:
        """The name of its action."""
        return self.action or id_of(self.url)


def new_job(value: object) -> NewJob:
    """Return the job that a document describes; raises InvalidDocument."""
    try:
        return NewJob.model_validate(value)
    except ValidationError as error:
        raise InvalidDocument(problems_of(error)) from None


def new_jobs(documents: Sequence[Document]) -> list[NewJob]:
    """Return the jobs that documents describe; raises InvalidDocument with all their problems."""
    news: list[NewJob] = []
    faults: list[Problem] = []
    places: dict[str, str] = {}
    for where, value in documents:
        try:
            new = new_job(value)
            check_is_first(new, where, places)
            news.append(new)
        except InvalidDocument as error:
            faults += located(where, error).problems
    if faults:
        raise InvalidDocument(faults)
    return news


def check_is_first(new: NewJob, where: str, places: dict[str, str]) -> None:
    """Note the place of a job by its name; raises InvalidDocument if it has one already."""
    first = places.setdefault(new.name, where)
    if first != where:
        remedy = f"is also the job of {first}; keep one of the two"
        raise InvalidDocument([Problem("url", new.url, remedy)])


def seconds_of(every: timedelta | None) -> int | None:
    """Return an interval in seconds, of which it has a whole number."""
    return None if every is None else every // SECOND


def first_runs(news: Sequence[NewJob], first: datetime) -> list[datetime]:
    """Return when each job runs first: as it says, but not before `first`.

    Those of one interval that do not say it are spread evenly over it.
    """
    begins = (first + SECOND).replace(microsecond=0)
    places: dict[int, datetime] = {}
    spread = []
    for number, new in enumerate(news):
        if new.next_run_at is None:
            spread.append(number)
        else:
            places[number] = max(begins, _from_second(new.next_run_at))
    spread.sort(key=lambda number: news[number].interval_s)
    for interval_s, some in groupby(spread, key=lambda number: news[number].interval_s):
        numbers = list(some)
        for place, number in enumerate(numbers):
            offset_s = interval_s * place // len(numbers)
            places[number] = begins + timedelta(seconds=offset_s)
    return [places[number] for number in range(len(news))]


def _from_second(at: datetime) -> datetime:
    """Return the first whole second after an instant, or that instant."""
    return at if not at.microsecond else at.replace(microsecond=0) + SECOND


def document_of(new: NewJob, stored: Mapping[str, Any] | None, begins: datetime) -> dict[str, Any]:
    """Return the document of a job's action; what is stored of it keeps its grid and policy.

    Raises Refused if the stored action of that name does something else.
    """
    job: dict[str, Any] = {"url": new.url, **({"meta": new.meta} if new.meta else {})}
    made = {"operations": {JOB: job}, **_switch(new, stored or {})}
    grid: dict[str, Any] = {"starting_at": format_instant(begins)}
    if stored is None:
        return {"name": new.name, **made, "when": _when(grid, new, begins)}
    before = (stored.get("operations") or {}).get(JOB)
    if not isinstance(before, Mapping) or before.get("url") != new.url:
        raise Refused(f"an action named {new.name!r} exists, and is not the job of {new.url}")
    when = stored.get("when")
    if isinstance(when, Mapping) and "every" in when:
        grid = dict(when)
    return {**stored, **made, "when": _when(grid, new, begins)}


def _turned(grid: Mapping[str, Any], begins: datetime) -> dict[str, Any]:
    """Return a grid as an interval from the end, and that as a grid that begins anew."""
    kept = {key: grid[key] for key in ("jitter", "jitter_each") if key in grid}
    if grid.get("from") != END:
        return {**kept, "from": END}
    return {**kept, "starting_at": format_instant(begins)}


def _when(grid: Mapping[str, Any], new: NewJob, begins: datetime) -> dict[str, Any]:
    """Return the interval of a job; what a request leaves out stays."""
    if new.from_end is not None and new.from_end != (grid.get("from") == END):
        grid = _turned(grid, begins)
    jitter = None if new.jitter_s is None else f"PT{new.jitter_s}S"
    given = {"every": new.interval_s, "jitter": jitter, "jitter_each": new.jitter_each}
    return {**grid, **{key: value for key, value in given.items() if value is not None}}


def _switch(new: NewJob, stored: Mapping[str, Any]) -> dict[str, bool]:
    """Return `active` if a job says it and it differs; nothing otherwise."""
    is_same = new.active is None or new.active == stored.get("active", True)
    return {} if is_same else {"active": bool(new.active)}
