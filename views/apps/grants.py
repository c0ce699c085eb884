"""What small apps may reach, and the secrets of their webhooks."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

from pydantic import Field

from minutebook.grants import EVERYTHING, why_no_command
from models.errors import Refused
from models.store import tenants
from models.store.tenants import storing
from models.tenant.document import parse_small_app
from runtime.database import reading
from runtime.references import SecretMissing
from views.apps.granted import ShownGrants
from views.finding import find_app
from views.installation import Installation
from views.verbs import ADMINISTER, READ, Verb
from views.view import View


class GrantedTo(View):
    """What a small app may reach."""

    name: str = Field(description="Name of the small app.")
    grants: ShownGrants = Field(
        description="Names or patterns by kind; `*` is all that settings allow."
    )


class HookSecret(View):
    """The secret that signs a small app's webhooks; its receivers need it."""

    name: str
    secret: str = Field(description="Derived from SCHED_HOOK_SECRET and the app's name.")


@Verb("show_grants", "GET /api/apps/{app=name}/grants", READ)
def granted(installation: Installation, name: str) -> GrantedTo:
    """Return what a small app may reach.

    Raises NotFound.
    """
    with reading(installation.engine) as connection:
        app = find_app(connection, installation, name)
        return GrantedTo(name=name, grants=tenants.grants_of(connection, app.id))


@Verb(
    "change_grants",
    "PATCH /api/apps/{app=name}/grants?everything=all_",
    ADMINISTER,
    body=("changes",),
    is_of_installation=True,
)
def grant(
    installation: Installation, name: str, changes: Mapping[str, Sequence[str]], *, all_: bool
) -> GrantedTo:
    """Change what a small app may reach, and return it; an unknown app is created, in UTC.

    `changes` replace the lists of their kinds; with `all_`, all that the settings allow is granted
    first, but no commands. Its documents are checked when they are next saved, and its operations
    when they run.
    Raises InvalidSmallApp for a name that no small app can have, NotFound for an unknown one
    without changes, and Refused for a name that cannot be printed or a program with a broken list
    of variables.
    """
    _check(changes)
    with installation.engine.begin() as connection:
        if (all_ or changes) and not installation.is_bound:
            storing.ensure(connection, parse_small_app({"name": name}))
        app = find_app(connection, installation, name)
        tenants.lock(connection, app.id)
        before = tenants.grants_of(connection, app.id)
        if all_:
            # A program has to be named: it runs as the worker's account.
            before = replace(EVERYTHING, commands=before.commands)
        # An empty text grants nothing of its kind.
        lists = {kind: tuple(filter(None, names)) for kind, names in changes.items() if names}
        grants = replace(before, **lists)
        if all_ or lists:
            tenants.set_grants(connection, app.id, grants)
            details = {app.name: asdict(grants)}
            installation.audit(connection, app.id, "app.grant", details)
    return GrantedTo(name=name, grants=grants)


def _check(changes: Mapping[str, Sequence[str]]) -> None:
    for kind, names in changes.items():
        for text in names:
            if not text.isprintable():
                raise Refused(f"{kind} {text!a} has a character that cannot be printed")
    for text in filter(None, changes.get("commands", ())):
        if (why := why_no_command(text)) is not None:
            raise Refused(f"program {text!r} {why}")


def hook_secret(installation: Installation, name: str) -> HookSecret:
    """Return the secret of a small app's webhooks.

    Raises NotFound, and Refused without a secret or if a reference to one leads nowhere.
    """
    from tasks.notices.signing import secrets_of

    with reading(installation.engine) as connection:
        find_app(connection, installation, name)
    try:
        found = secrets_of(installation.settings.hook, name)
    except SecretMissing as error:
        raise Refused(f"SCHED_HOOK_SECRET: {error}") from None
    if not found:
        raise Refused("webhooks are not signed; set SCHED_HOOK_SECRET")
    return HookSecret(name=name, secret=found[0])
