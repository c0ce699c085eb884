"""How far small apps are trusted, and the secrets of their webhooks."""

from collections.abc import Sequence
from dataclasses import asdict

from pydantic import Field

from models.errors import Hint, Refused
from models.store import tenants
from models.store.tenants import storing
from models.tenant.document import parse_small_app
from models.trust import RESTRICTED, TRUSTED, Trust
from runtime.database import reading
from runtime.references import SecretMissing
from scheduler.changes.default_actions import give_maintenance
from services.installation import Installation
from services.lookup import find_app
from services.verbs import ADMINISTER, Verb
from services.view import RequestBody, View
from tasks.built_in import built_in_steps


class TrustInApp(View):
    """How far a small app is trusted."""

    name: str = Field(description="Name of the small app.")
    trusted: bool = Field(description="Whether it may name whatever the settings allow.")
    queues: tuple[str, ...] = Field(
        description="Queues of a restricted app, beside quick, heavy and default."
    )
    tasks: tuple[str, ...] = Field(
        description="Tasks of the Celery application that a restricted app may send, or patterns."
    )


class TrustChange(RequestBody):
    """How far a small app is to be trusted."""

    trusted: bool | None = Field(
        None,
        strict=True,
        description="True lifts all restrictions; false leaves the given queues and tasks alone; "
        "null adds them.",
    )
    queues: tuple[str, ...] = Field((), description="Queues that a restricted app may use.")
    tasks: tuple[str, ...] = Field((), description="Tasks that it may send, or patterns.")


@Verb("trust_app", "PATCH /api/apps/{app=name}/trust", ADMINISTER, is_of_installation=True)
def trust_app(installation: Installation, name: str, change: TrustChange) -> TrustInApp:
    """Change how far a small app is trusted; an unknown app is created, in UTC and restricted.

    Its documents are checked when they are next saved, and its operations when they run,
    except for `policy.queue`.
    Raises InvalidSmallApp for a name that no small app can have, and Refused for queues or tasks
    of a trusted app and for a text that cannot be printed.
    """
    with installation.engine.begin() as connection:
        model = parse_small_app({"name": name})
        is_new = not installation.is_bound and storing.ensure(connection, model)
        app = find_app(connection, installation, name)
        if is_new:
            give_maintenance(connection, app, built_in_steps())
        tenants.lock(connection, app.id)
        trust = _changed(name, tenants.trust_of(connection, app.id), change)
        tenants.set_trust(connection, app.id, trust)
        installation.audit(connection, app.id, "app.trust", {app.name: asdict(trust)})
    return TrustInApp(name=name, trusted=trust.is_trusted, queues=trust.queues, tasks=trust.tasks)


def _changed(name: str, before: Trust, change: TrustChange) -> Trust:
    """Return how far a small app is trusted after a change. Raises Refused."""
    for text in (*change.queues, *change.tasks):
        if not text.strip() or not text.isprintable():
            raise Refused(f"{text!a} is no name of a queue or task; write one that can be printed")
    is_trusted = before.is_trusted if change.trusted is None else change.trusted
    if is_trusted and (change.queues or change.tasks):
        raise Refused(
            f"a trusted small app may use every queue and task; leave {name!r} without a list, or "
            "make it restricted",
            Hint("add --restricted", http="send trusted=false"),
        )
    if is_trusted:
        return TRUSTED
    kept = RESTRICTED if change.trusted is False else before
    return Trust(
        queues=_joined(kept.queues, change.queues), tasks=_joined(kept.tasks, change.tasks)
    )


def _joined(known: Sequence[str], new: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*known, *new)))


class HookSecret(View):
    """The secret that signs a small app's webhooks; its receivers need it."""

    name: str
    secret: str = Field(description="Derived from SCHED_HOOK_SECRET and the app's name.")


def hook_secret(installation: Installation, name: str) -> HookSecret:
    """Return the secret of a small app's webhooks.

    Raises NotFound, and Refused without a secret or if a reference to one leads nowhere.
    """
    from tasks.notices.webhook import secrets_of

    with reading(installation.engine) as connection:
        find_app(connection, installation, name)
    try:
        found = secrets_of(installation.settings.hook, name)
    except SecretMissing as error:
        raise Refused(str(error)) from None
    if not found:
        raise Refused("webhooks are not signed; set SCHED_HOOK_SECRET")
    return HookSecret(name=name, secret=found[0])
