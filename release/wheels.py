"""Whether what is published is valid, and installs and runs alone in an empty environment."""

import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from packaging.metadata import Metadata

from release.dist import build_all
from release.findings import Finding

WITHIN_S = 900.0
MARKDOWN = "text/markdown"
WITH_NO_SERVER = "docs/how-to/install.md"


class Failed(Exception):
    """A command did not end as it should."""


def check_wheels(folder: Path) -> Iterator[Finding]:
    """Build both distributions in `folder`, and install and run each there."""
    files = build_all(folder / "dist")
    for file in files:
        yield check_metadata(file.name, metadata_of(file))
    client, server = (one for one in files if one.suffix == ".whl")
    yield check_client(client, folder)
    yield check_server(client, server, folder)


def metadata_of(file: Path) -> bytes:
    """Return the metadata that an index reads of a wheel or an sdist."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as wheel:
            name = next(one for one in wheel.namelist() if one.endswith(".dist-info/METADATA"))
            return wheel.read(name)
    with tarfile.open(file) as sdist:
        name = next(one for one in sorted(sdist.getnames(), key=len) if one.endswith("/PKG-INFO"))
        content = sdist.extractfile(name)
        return b"" if content is None else content.read()


def check_metadata(name: str, content: bytes) -> Finding:
    """Return whether an index would accept the metadata and show the description."""
    try:
        read = Metadata.from_email(content, validate=True)
    except ExceptionGroup as errors:
        texts = "; ".join(map(str, errors.exceptions))
        return Finding(f"the metadata of {name} is invalid", f"correct it: {texts}")
    shown = (read.description_content_type or "").partition(";")[0]
    if shown != MARKDOWN or not (read.description or "").strip():
        return Finding(f"{name} has no description in Markdown", "name a file in project.readme")
    return Finding(f"the metadata of {name} is valid")


def check_client(client: Path, folder: Path) -> Finding:
    """Install the client without anything else; import it, and ask its command for the server."""
    environment = folder / "client"
    python = str(environment / "bin" / "python")
    try:
        # Without an index, whatever it required would be missing.
        _install(environment, ["--no-index", str(client)])
        _run([python, "-c", "import minutebook; minutebook.follow"], folder)
        said = _run([python, "-m", "minutebook", "status"], folder, code=1)
        if WITH_NO_SERVER not in said:
            raise Failed(f"without the server, its command says: {_last(said)}")
    except Failed as error:
        return Finding(f"the client's wheel does not work alone; {error}", "correct the package")
    return Finding("the client's wheel installs without dependencies and says where the server is")


def check_server(client: Path, server: Path, folder: Path) -> Finding:
    """Install both wheels with all that they need, and run commands that start nothing."""
    environment = folder / "server"
    ours = [str(environment / "bin" / "minutebook")]
    home = ["--home", str(folder / "home")]
    try:
        _install(environment, [str(client), str(server)])
        for arguments in (
            ["--version"],
            ["--help"],
            [*home, "migrate"],
            [*home, "status", "--json"],
        ):
            _run([*ours, *arguments], folder)
    except Failed as error:
        remedy = "if that is not pip's way to an index, correct the package"
        return Finding(f"the server's wheel does not work; {error}", remedy)
    return Finding("both wheels install into an empty environment, and the server runs there")


def _install(environment: Path, what: Sequence[str]) -> None:
    _run([sys.executable, "-m", "venv", "--without-pip", str(environment)], environment.parent)
    pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python")]
    # pip has settings in the environment: an index, certificates, a proxy.
    mine = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    _run([*pip, "install", "-q", *what], environment.parent, environ=mine)


def _run(
    command: Sequence[str], folder: Path, code: int = 0, environ: Mapping[str, str] | None = None
) -> str:
    """Return what a command says; raises Failed unless it ends with `code`."""
    with_path = {"PATH": os.defpath} if environ is None else environ
    shown = " ".join(Path(one).name if os.path.isabs(one) else one for one in command)
    try:
        done = subprocess.run(
            command, cwd=folder, env=with_path, capture_output=True, text=True, check=False,
            timeout=WITHIN_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Failed(f"{shown} does not end within {WITHIN_S:.0f} s") from None
    if done.returncode != code:
        raise Failed(f"{shown} ended with {done.returncode}: {_last(done.stderr)}")
    return done.stdout + done.stderr


def _last(text: str) -> str:
    return (text.strip().splitlines() or ["no word"])[-1]
