"""`minutebook step …`: the steps that actions may name, and modules that failed to load."""

from cli.tree import group
from cli.verbs import offer
from services import steps

commands = group("Steps: what actions can do.")
offer(commands, is_anywhere=True, list=steps.list_steps)
