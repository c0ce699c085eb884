"""Settings of sources, snapshots and channels."""

import re
from typing import Annotated

import sqlalchemy as sa
from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from runtime.sections import Section
from runtime.sections.named import Named, object_of

_CHANNEL = re.compile(r"[a-z][a-z0-9_]{0,62}")


def _urls(value: dict[str, SecretStr]) -> Named[SecretStr]:
    for name, url in value.items():
        text = url.get_secret_value()
        if text.startswith(("env:", "file:")):
            continue
        try:
            sa.make_url(text)
        except (sa.exc.ArgumentError, ValueError):
            raise ValueError(
                f"{name}: write an SQLAlchemy URL such as postgresql://HOST/NAME, "
                "or a reference to it: env:NAME or file:/absolute/path"
            ) from None
    return Named(value)


def _channels(value: dict[str, SecretStr]) -> Named[SecretStr]:
    for name, url in value.items():
        if not _CHANNEL.fullmatch(name):
            raise ValueError(
                f"{name!r} is no name of a channel; write lowercase letters, digits and _"
            )
        if ":" not in url.get_secret_value():
            raise ValueError(
                f"{name}: write a URL of Apprise such as slack://TOKEN_A/TOKEN_B/TOKEN_C, or a "
                "reference to it: env:NAME or file:/absolute/path"
            )
    return Named(value)


Channels = Annotated[dict[str, SecretStr], BeforeValidator(object_of), AfterValidator(_channels)]
Connections = Annotated[dict[str, SecretStr], BeforeValidator(object_of), AfterValidator(_urls)]


class FetchSettings(Section):
    """Limits of a refresh."""

    timeout_s: float = Field(60, gt=0, le=3600, description="seconds one download may take")
    max_bytes: int = Field(
        512 * 2**20, ge=1, description="largest source, in bytes, packed and unpacked"
    )
    max_bad_rows: float = Field(
        0.1, ge=0, le=1, description="share of rows that may be left out before a domain fails"
    )
    import_s: float = Field(
        600, gt=0, le=86_400, description="seconds one reader or import may take"
    )
    cpu_s: float = Field(
        600, gt=0, le=86_400, description="seconds of CPU of one query, reader or import"
    )
    memory_mb: int = Field(
        1024, ge=256, le=1_048_576, description="memory of one query, reader or import, in MiB"
    )
    threads: int = Field(2, ge=1, le=256, description="threads of one import")
    allow_private: bool = Field(False, description="whether URLs may lead to private addresses")


class SnapshotSettings(Section):
    """The place of snapshots."""

    url: SecretStr = Field(
        SecretStr(""),
        description="file://… or another fsspec URL such as s3://bucket/prefix; "
        "the home folder by default",
    )
