"""Files of systemd's timers, each with that of its service."""

from collections.abc import Sequence
from pathlib import Path

from moving.systemd import service_of
from moving.systemd.unit import unit_of
from views.files import read_text


def timers_in(files: Sequence[Path], longest: int) -> list[tuple[Path, str, str | None]]:
    """Return timer files of systemd, each with its text and that of its service, None without one.

    A service is looked for in the folder of its timer. A text has its drop-ins at its end.
    """
    found = []
    for file in files:
        timer = _unit_text(file, longest)
        service = file.parent / Path(service_of(file.stem, unit_of(timer))).name
        found.append((file, timer, _unit_text(service, longest) if service.is_file() else None))
    return found


def _unit_text(file: Path, longest: int) -> str:
    files = [file, *sorted(file.with_name(f"{file.name}.d").glob("*.conf"))]
    return "\n".join(read_text(one, longest) for one in files)
