"""Channels: the chats and pagers that the settings name, and a test of each."""

from pydantic import Field

from models.errors import NotFound, Refused
from models.problems import listed
from services.installation import Installation
from services.verbs import ADMINISTER, READ, Verb
from services.view import Listing, View
from tasks.notices.channel import Message, send, setting_of
from tasks.outgoing.failures import Undelivered

TITLE = "[minutebook] test"
TEXT = "This is a test: Minutebook can notify this channel."


class Channel(View):
    """A channel that hooks may notify."""

    name: str = Field(description='Its name, as in `{"notify": "ops"}`.')


class Channels(Listing[Channel]):
    """All channels, by name."""


class Tested(View):
    """A channel that took a test message."""

    name: str = Field(description="Its name.")


@Verb("list_channels", "GET /api/channels", READ, is_of_installation=True)
def list_all(installation: Installation) -> Channels:
    """List the channels that the settings name."""
    return Channels(tuple(Channel(name=name) for name in sorted(installation.settings.notify)))


@Verb("test_channel", "POST /api/channels/{name}/test", ADMINISTER, is_of_installation=True)
def test(installation: Installation, name: str) -> Tested:
    """Send a test message to a channel.

    Raises NotFound, and Refused if the service did not take it.
    """
    known = installation.settings.notify
    if name not in known:
        names = listed(sorted(known)) if known else "none"
        raise NotFound(f"there is no channel {name!r} ({names}); set {setting_of(name)} to its URL")
    try:
        send(name, Message(TITLE, TEXT, "minutebook-test", is_good=True), installation.settings)
    except Undelivered as error:
        raise Refused(str(error)) from None
    return Tested(name=name)
