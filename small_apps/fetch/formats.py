"""Which format a source has: told by its name, by its media type, or by its first bytes."""

from pathlib import PurePosixPath

FORMATS = ("csv", "json", "jsonl", "parquet")
SUFFIXES = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}
MEDIA_TYPES = {
    "text/csv": "csv",
    "application/json": "json",
    "application/x-ndjson": "jsonl",
    "application/jsonl": "jsonl",
    "application/vnd.apache.parquet": "parquet",
}


def format_of(name: str, media_type: str | None = None) -> str:
    """Return the format that a file's name or a media type tells; CSV when neither does."""
    by_type = MEDIA_TYPES.get((media_type or "").partition(";")[0].strip().lower())
    return format_of_name(name) or by_type or "csv"


def format_of_name(name: str) -> str | None:
    """Return the format that a file's suffix tells, before `.gz` too; None when it tells none."""
    path = PurePosixPath(name)
    if path.suffix.lower() == ".gz":
        path = path.with_suffix("")
    return SUFFIXES.get(path.suffix.lower())
