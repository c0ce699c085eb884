"""Commands by the words of other tools."""

from collections.abc import Mapping

from runtime.gone import COMMANDS as GONE

# In a group of commands, if it has the second and not the first.
IN_GROUPS: Mapping[str, str] = {
    "create": "add",
    "new": "add",
    "ls": "list",
    "rm": "delete",
    "remove": "delete",
    "get": "show",
    "describe": "show",
    "log": "logs",
    "trigger": "run",
    "mv": "rename",
}
# Commands alone, which are those of a group here.
OF_GROUPS: Mapping[str, str] = {
    "add": "action add",
    "apply": "action apply",
    "create": "action add",
    "run": "action run",
    "trigger": "action run",
    "list": "action list",
    "ls": "action list",
    "get": "action show",
    "show": "action show",
    "describe": "action show",
    "explain": "action explain",
    "next": "action next",
    "rm": "action delete",
    "delete": "action delete",
    "logs": "operation logs",
    "cancel": "operation cancel",
    "retry": "operation retry",
    "start": "up",
    "stop": "down",
    "ps": "status",
    "serve": "web",
    "login": "token",
}


def advice_for(name: str) -> str | None:
    """Return what to write instead of a command that is not there; None if nothing is meant.

    `name` has the command's group before it, if it has one.
    """
    if name in GONE:
        return f"No such command '{name}'; {GONE[name]}."
    meant = OF_GROUPS.get(name)
    return None if meant is None else f"No such command '{name}'; write 'minutebook {meant}'."
