"""Channels in words."""

from cli.render import listing, sentence
from services.channels import Channels, Tested

FORMS = {
    Channels: listing("name"),
    Tested: sentence("channel {name} took the test message"),
}
