"""Settings of the data product: sources and snapshots."""

from pathlib import Path
from typing import Annotated, Self, cast

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from runtime import config
from runtime.sections import Section
from runtime.sections.limits import LimitSettings
from runtime.sections.named import Named, object_of
from runtime.sections.processes import RetentionSettings


def _urls(value: dict[str, SecretStr]) -> Named[SecretStr]:
    from sqlalchemy import exc, make_url

    for name, url in value.items():
        text = url.get_secret_value()
        if text.startswith(("env:", "file:")):
            continue
        try:
            make_url(text)
        except (exc.ArgumentError, ValueError):
            raise ValueError(
                f"{name}: write an SQLAlchemy URL such as postgresql://HOST/NAME, "
                "or a reference to it: env:NAME or file:/absolute/path"
            ) from None
    return Named(value)


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
    import_s: float = Field(600, gt=0, le=86_400, description="seconds one import may take")
    cpu_s: float = Field(600, gt=0, le=86_400, description="seconds of CPU of one query or import")
    memory_mb: int = Field(
        1024, ge=256, le=1_048_576, description="memory of one query or import, in MiB"
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


class Retention(RetentionSettings):
    """How long history and snapshots are kept."""

    snapshots: int = Field(
        5, ge=1, description="snapshots kept of each domain beside the used ones"
    )


class Limits(LimitSettings):
    """Ceilings of each restricted small app, with that of its data; 0 is none."""

    disk_mb: int = Field(
        51_200, ge=0, description="MiB of a restricted small app's snapshots and downloads"
    )


class Settings(config.Settings):
    """All settings of an installation with the data product."""

    data_root: Path = Field(
        Path(),
        description="folder of file sources; `data` in the home folder by default",
    )
    fetch: FetchSettings = FetchSettings()
    snapshots: SnapshotSettings = SnapshotSettings()
    retention: Retention = Retention()
    limits: Limits = Limits()
    connections: Connections = Field(
        Named(),
        description="databases that sources may query, by name: an SQLAlchemy URL or reference",
    )

    def restricted_to(self, folder: str) -> Self:
        """Return the settings for the work of a restricted small app with this folder.

        They have no connections and no private addresses of sources either.
        """
        public = self.fetch.model_copy(update={"allow_private": False})
        update = {"connections": Named(), "fetch": public}
        return super().restricted_to(folder).model_copy(update=update)

    @property
    def effective_data_root(self) -> Path:
        """The absolute folder of file sources."""
        return (self.home / "data") if self.data_root == Path() else self.data_root.absolute()


def settings_in(settings: config.Settings) -> Settings:
    """Return an installation's settings with those of the data product."""
    return cast("Settings", settings)
