"""`minutebook notify …`: channels, the chats and pagers that hooks may notify."""

from cli.tree import group
from cli.verbs import offer
from services import channels

commands = group("Channels: chats and pagers that hooks may notify.")
offer(commands, list=channels.list_all, test=channels.test)
