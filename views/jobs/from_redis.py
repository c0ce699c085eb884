"""Jobs that a scheduler keeps in Redis, with their next runs.

`scraper:jobs` is a hash of JSON by id, `scraper:schedule` a sorted set of ids by Unix seconds.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from models.errors import InvalidDocument, Problem, Refused
from models.json_text import read_json
from models.values import format_instant
from views.files import Document, located
from views.foreign_redis import foreign_redis

JOBS, SCHEDULE = "scraper:jobs", "scraper:schedule"
KEYS = ("url", "interval_s", "meta")
MOST_JOBS = 100_000


def read_jobs(url: str, now: datetime) -> list[Document]:
    """Return the jobs with their places; those that are not scheduled run at `now`.

    They wait for a worker, or were lost with one. Raises Refused, or InvalidDocument with the
    faults of all jobs.
    """
    documents: list[Document] = []
    problems: list[Problem] = []
    with foreign_redis(url) as client:
        for id, text, score in _stored(client):
            where = f"{JOBS} {id}"
            try:
                documents.append((where, _document(text, score, now)))
            except InvalidDocument as error:
                problems += located(where, error).problems
    if problems:
        raise InvalidDocument(problems)
    if not documents:
        raise Refused(f"Redis has no jobs in {JOBS}; check the URL and its number of the database")
    return documents


def _stored(client: Any) -> Iterator[tuple[str, str, float | None]]:
    count = client.hlen(JOBS)
    if count > MOST_JOBS:
        raise Refused(f"{JOBS} has {count:,} jobs; import at most {MOST_JOBS:,}")
    next_at = dict(client.zscan_iter(SCHEDULE, count=1_000))
    for id, text in sorted(dict(client.hscan_iter(JOBS, count=1_000)).items()):
        yield id, text, next_at.get(id)


def _document(text: str, score: float | None, now: datetime) -> object:
    """Return a job as `job import` takes it: what it leaves empty is as it is left out."""
    stored = read_json(text)
    if not isinstance(stored, dict):
        return stored
    kept = {key: stored[key] for key in KEYS if stored.get(key)}
    return {**kept, "next_run_at": format_instant(now if score is None else _instant(score))}


def _instant(score: float) -> datetime:
    try:
        return datetime.fromtimestamp(score, UTC)
    except (OverflowError, ValueError, OSError):
        remedy = f"is not an instant; correct its score in {SCHEDULE}"
        raise InvalidDocument([Problem("next_run_at", score, remedy)]) from None
