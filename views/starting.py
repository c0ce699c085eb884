"""Write what a new installation begins with."""

from pathlib import Path

from pydantic import Field

from models.errors import Refused
from runtime.folders import make_private
from views.installation import Installation
from views.view import Listing, View

TEMPLATES = Path(__file__).with_name("start")
ACTION = "hello.yaml"
SETTINGS = "config.yaml"


class StartFile(View):
    """A file to begin with."""

    path: str
    is_new: bool = Field(description="False if it existed, and was left as it is.")


class Started(Listing[StartFile]):
    """The files to begin with."""


def start(installation: Installation, folder: Path) -> Started:
    """Write a commented action into a folder, and settings into the home folder.

    No file is overwritten.
    """
    home = installation.settings.home
    try:
        make_private(home)
        return Started((_written(folder / ACTION), _written(home / SETTINGS)))
    except OSError as error:
        raise Refused(f"{error.filename} cannot be written: {error.strerror}") from None


def _written(file: Path) -> StartFile:
    """Write the template of a file's name there, unless the file exists."""
    text = (TEMPLATES / file.name).read_text(encoding="utf-8")
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError:
        return StartFile(path=str(file), is_new=False)
    return StartFile(path=str(file), is_new=True)
