"""The documents of jobs: what is given of a job, and the action that is made of it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from pydantic import Field, JsonValue, ValidationError

from models.action.intervals import END
from models.errors import InvalidDocument, Problem, Refused
from models.job import JOB, id_of
from models.problems import problems_of
from models.values import Url, format_instant
from services.files import Document, located
from services.view import RequestBody

EVERY_S = 300
MOST_S = 3660 * 86_400
SECOND = timedelta(seconds=1)


class NewJob(RequestBody):
    """A job as a request describes it."""

    url: Url = Field(description="URL of its work.")
    interval_s: int = Field(
        EVERY_S, ge=1, le=MOST_S, strict=True, description="Seconds between its runs."
    )
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
    id: str | None = Field(None, description="Ignored: it follows from its URL.")

    @property
    def name(self) -> str:
        """The name of its action."""
        return id_of(self.url)


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
    """Return when each job runs first, from `first` on: those of one interval spread over it."""
    begins = (first + SECOND).replace(microsecond=0)
    totals = Counter(new.interval_s for new in news)
    places: Counter[int] = Counter()
    found = []
    for new in news:
        offset_s = new.interval_s * places[new.interval_s] // totals[new.interval_s]
        places[new.interval_s] += 1
        found.append(begins + timedelta(seconds=offset_s))
    return found


def document_of(new: NewJob, stored: Mapping[str, Any] | None, begins: datetime) -> dict[str, Any]:
    """Return the document of a job's action; what is stored of it keeps its grid and policy.

    Raises Refused if the stored action of that name does something else.
    """
    job: dict[str, Any] = {"url": new.url, **({"meta": new.meta} if new.meta else {})}
    made = {"operations": {JOB: job}}
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
