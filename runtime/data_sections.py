"""Settings of what a refresh reads and where its snapshots lie."""

from pydantic import Field, SecretStr

from runtime.sections import Section


class FetchSettings(Section):
    """Bounds of what a refresh reads."""

    timeout_s: float = Field(60, gt=0, le=3600, description="seconds one download may take")
    max_bytes: int = Field(
        512 * 2**20, ge=1, description="largest source, in bytes, packed and unpacked"
    )
    max_bad_rows: float = Field(
        0.1, ge=0, le=1, description="share of rows that may be left out before a domain fails"
    )
    parallel: int = Field(4, ge=1, le=64, description="domains read side by side")
    memory_mb: int = Field(
        512, ge=64, le=1_048_576, description="memory of one import; more goes to the disk"
    )
    threads: int = Field(2, ge=1, le=256, description="threads of one import")
    allow_private: bool = Field(False, description="whether URLs may lead to private addresses")


class SnapshotSettings(Section):
    """Where snapshots lie."""

    url: SecretStr = Field(
        SecretStr(""),
        description="file://… or another fsspec URL such as s3://bucket/prefix; "
        "the home folder by default",
    )
