"""Secrets behind references: read at use, never stored, logged or shown."""

import os
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from runtime.sections import SecretSettings

LARGEST_SECRET = 65_536
OWN_PREFIX = "SCHED_"


# For the references of settings, which an admin wrote.
OF_SETTINGS = SecretSettings(env=("*",), folder=Path("/"))


def resolved_setting(text: str) -> str:
    """Return what is in the file of a setting `file:PATH`; any other text unchanged.

    A secret of docker compose, systemd or Kubernetes is a file.
    """
    return resolved(text, OF_SETTINGS) if text.startswith("file:") else text


class SecretMissing(ValueError):
    """A reference is broken or not allowed by the settings; the text holds no secret."""


def resolved(
    text: str,
    settings: SecretSettings,
    environ: Mapping[str, str] | None = None,
    *,
    host: str | None = None,
) -> str:
    """Return the secret that `env:NAME` or `file:PATH` refers to; any other text unchanged.

    A file's last line break is dropped. `host` is where it will be sent. Raises SecretMissing for
    what the settings do not allow, also for Minutebook's own settings: a source could send them
    anywhere.
    """
    kind, _, name = text.partition(":")
    if kind in ("env", "file"):
        _check(text, kind, name, settings, host)
    if kind == "env":
        return _of_environment(name, os.environ if environ is None else environ)
    return _of_file(Path(name), settings) if kind == "file" else text


def _check(text: str, kind: str, name: str, settings: SecretSettings, host: str | None) -> None:
    is_allowed = kind == "file" or any(fnmatchcase(name, pattern) for pattern in settings.env)
    if not is_allowed or name.startswith(OWN_PREFIX):
        raise SecretMissing(f"{text} is not allowed by SCHED_SECRETS_ENV; add the name there")
    bound = [to for one, _, to in (pair.partition("@") for pair in settings.hosts) if one == name]
    if host is not None and bound and host.lower() not in bound:
        raise SecretMissing(f"{text} may be sent to {', '.join(bound)} only (SCHED_SECRETS_HOSTS)")


def _of_environment(name: str, environ: Mapping[str, str]) -> str:
    if not environ.get(name):
        raise SecretMissing(f"env:{name} is not set; set the variable {name} for this worker")
    return environ[name]


def _of_file(path: Path, settings: SecretSettings) -> str:
    if settings.folder == Path():
        raise SecretMissing(f"file:{path} is not allowed; set SCHED_SECRETS_FOLDER to its folder")
    try:
        found = path.resolve(strict=True)
        root = settings.folder.resolve()
        if not found.is_relative_to(root):
            raise SecretMissing(f"file:{path} is outside SCHED_SECRETS_FOLDER {root}")
        with found.open("rb") as stream:
            content = stream.read(LARGEST_SECRET + 1)
        if len(content) > LARGEST_SECRET:
            raise SecretMissing(f"file:{path} is larger than {LARGEST_SECRET:,} bytes")
        text = content.decode().removesuffix("\n").removesuffix("\r")
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SecretMissing(f"file:{path} cannot be read: {reason}") from None
    except UnicodeDecodeError:
        raise SecretMissing(f"file:{path} is not UTF-8 text") from None
    if not text:
        raise SecretMissing(f"file:{path} is empty")
    return text
