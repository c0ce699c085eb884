"""Schedules of objects: rows that are written in the transaction of their object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from django.conf import settings
from django.db import router, transaction
from django.db.models import F
from django.db.models.functions import Now
from django.db.models.signals import class_prepared, post_delete
from django.utils import timezone

from minutebook.django.sending import rows_of, send_after_commit

if TYPE_CHECKING:
    from django.db.models import Model

Owner = TypeVar("Owner", bound="type[Model]")

# What `schedule` passes on: keys of the step `celery_task`, and of the action.
OF_STEP = frozenset(
    {"queue", "exchange", "routing_key", "priority", "headers", "expires", "ignore_result"}
)
OF_ACTION = frozenset({"active", "description", "policy", "hooks"})
MAX_NAME = 200
_owners: set[Any] = set()


def owns_schedules(model: Owner) -> Owner:
    """Let objects of a model own schedules, which end when the object is deleted; a decorator.

    A receiver for all models would cost each of them Django's fast way to delete.
    """
    if model._meta.abstract:
        raise TypeError(f"{model.__name__} is abstract; decorate the models that are made of it")
    owner: Any = model._meta.concrete_model
    _owners.add(owner)
    for one in _with_proxies(owner):
        post_delete.connect(_end_with, sender=one)
    return model


def _with_proxies(model: Any) -> Iterator[Any]:
    """Yield a model and its proxies: what is deleted through one sends no signal of the model."""
    yield model
    for one in model.__subclasses__():
        if one._meta.proxy:
            yield from _with_proxies(one)


def schedule(
    instance: Model,
    *,
    when: str | timedelta | datetime | Mapping[str, Any] | Sequence[Any],
    task: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    key: str = "",
    **more: Any,
) -> None:
    """Schedule a Celery task for an object, or change that schedule, with the transaction.

    A text is a cron rule in Django's TIME_ZONE, a timedelta an interval and an aware datetime a
    date; anything else is the action's `when`. Several schedules of an object differ by `key`.
    `more` are `active`, `description`, `policy` and `hooks` of the action, and all other keys of
    the step `celery_task`, such as `queue`.
    """
    if unknown := more.keys() - OF_STEP - OF_ACTION:
        known = ", ".join(sorted(OF_STEP | OF_ACTION))
        raise TypeError(f"a schedule has no {min(unknown)!r}; it has {known}")
    if isinstance(args, str):
        raise TypeError(f"args are a list or a tuple, such as ({args!r},), not a text")
    owner = owner_of(instance)
    if instance._state.adding:
        raise ValueError("save the object first: its schedules are named for its primary key")
    call = {"args": list(args), "kwargs": dict(kwargs or {})}
    options = {name: more.pop(name) for name in OF_STEP & more.keys()}
    step = {"task": getattr(task, "name", task), **call, **options}
    document = {"name": _name(owner, key), "owner": owner, "when": _rule(when), **more}
    document["operations"] = {"celery_task": step}
    using = _database_of(instance)
    with transaction.atomic(using):
        _store(document, using)
        send_after_commit([document["name"]], using)


def unschedule(instance: Model, key: str | None = None) -> int:
    """End the schedule of a key, or all of an object, with the transaction; return how many."""
    owner, using = owner_of(instance), _database_of(instance)
    of_owner = rows_of(using).filter(owner=owner)
    if key is not None:
        of_owner = of_owner.filter(pk=_name(owner, key))
    with transaction.atomic(using):
        count = _changed(of_owner.filter(document__isnull=False), document=None)
        ended = of_owner.filter(document__isnull=True)
        send_after_commit(ended.values_list("pk", flat=True), using)
    return count


def owner_of(instance: Model) -> str:
    """Return the `owner` of an object's actions, such as `shop.order:42`."""
    model: Any = next((one for one in type(instance).__mro__ if one in _owners), None)
    if model is None:
        raise TypeError(f"decorate the model {type(instance).__name__} with @owns_schedules")
    return f"{model._meta.label_lower}:{quote(str(instance.pk), safe='')}"


def _name(owner: str, key: str) -> str:
    # In the path of a URL no text has a slash.
    name = f"{owner}:{quote(key, safe='')}" if key else owner
    if len(name) > MAX_NAME:
        raise ValueError(f"name of over {MAX_NAME} characters; shorten the key: {name}")
    return name


def _rule(when: Any) -> Any:
    if isinstance(when, str):
        return {"cron_rule": when, "timezone": settings.TIME_ZONE}
    if isinstance(when, timedelta):
        return {"every": when.total_seconds()}
    if isinstance(when, datetime):
        if timezone.is_naive(when):
            raise ValueError(f"naive instant {when!r}; give it a time zone")
        return {"due_date": when.replace(microsecond=0).isoformat()}
    return when


def _store(document: dict[str, Any], using: str) -> None:
    """Change the row of a document's name, or make it."""
    rows, name = rows_of(using), document["name"]
    values = {"owner": document["owner"], "document": document}
    # Another process may make it, or delete it at last, in between.
    while not _changed(rows.filter(pk=name), **values):
        new = {**values, "changed_at": Now()}
        if rows.get_or_create(name=name, defaults=new)[1]:
            break


def _changed(rows: Any, **values: Any) -> int:
    """Change rows, to be sent again; return how many."""
    new = {"version": F("version") + 1, "state": "pending", "detail": "", "changed_at": Now()}
    return int(rows.update(**new, **values))


def _database_of(instance: Model) -> str:
    return str(router.db_for_write(type(instance), instance=instance))


def _end_with(instance: Model, **_: Any) -> None:
    """End the schedules of an object that is being deleted, in the same transaction."""
    unschedule(instance)


def _end_with_proxy(sender: Any, **_: Any) -> None:
    """Let a proxy of a model that owns schedules end them too; a child deletes its parent."""
    if sender._meta.proxy and sender._meta.concrete_model in _owners:
        post_delete.connect(_end_with, sender=sender)


class_prepared.connect(_end_with_proxy)
