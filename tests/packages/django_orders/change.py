"""A process of the shop that changes the schedule of its only order."""

import os
import sys
from collections.abc import Callable

import django

django.setup()

from django.core.management import call_command
from django.db import transaction
from shop.models import Order

from minutebook.django import schedule
from minutebook.django.models import Schedule


def change(when: str) -> None:
    order = Order.objects.get()
    with transaction.atomic():
        schedule(order, when=when, task="shop.remind")


def die() -> None:
    """Die between the commit and the sending."""
    with transaction.atomic():
        transaction.on_commit(lambda: os._exit(9))
        change("59 23 * * *")


def make() -> None:
    call_command("migrate", run_syncdb=True, verbosity=0)
    Order.objects.create()


def many(hour: str) -> None:
    for minute in range(20):
        change(f"{minute} {hour} * * *")


def show() -> None:
    (one,) = Schedule.objects.all()
    print(one.version, one.state, one.document["when"]["cron_rule"])


ACTS: dict[str, Callable[..., None]] = {"die": die, "make": make, "many": many, "show": show}
ACTS[sys.argv[1]](*sys.argv[2:])
