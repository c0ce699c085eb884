import pytest

from data.fetch.sources import format_of


@pytest.mark.parametrize(
    ("name", "media_type", "expected"),
    [
        ("a.csv", None, "csv"),
        ("a.JSON", "text/csv", "json"),
        ("a", "application/json; charset=utf-8", "json"),
        ("a.ndjson", None, "jsonl"),
        ("a.csv.gz", "application/gzip", "csv"),
        ("a.JSONL.GZ", None, "jsonl"),
        ("a.csv.zst", "application/zstd", "csv"),
        ("a.parquet", None, "parquet"),
        ("a", None, "csv"),
    ],
)
def test_the_format_comes_from_the_name_then_the_type(
    name: str, media_type: str | None, expected: str
) -> None:
    assert format_of(name, media_type) == expected
