"""Schedules of orders, against a real server: `manage.py test` runs these on each Django."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from io import StringIO
from typing import Any
from unittest import mock

from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import transaction
from django.db.models.functions import Now
from django.test import TestCase, TransactionTestCase, override_settings

from minutebook import actions
from minutebook.client import ApiError, Client
from minutebook.django import schedule, sync, unschedule
from minutebook.django.models import Schedule
from shop.models import Account, Customer, Debtor, GiftOrder, Order, Regular, UrgentOrder

DAILY, HOURLY = "0 7 * * *", "0 * * * *"
TASK = "shop.remind"


class RolledBack(Exception):
    """Ends a transaction."""


def remind(order: Any, when: Any = DAILY, **more: Any) -> None:
    schedule(order, when=when, task=TASK, args=[order.pk], **more)


def stored(name: str) -> dict[str, Any] | None:
    """Return an action's document as the server has it."""
    with actions.client() as server:
        try:
            found: dict[str, Any] = server.call("GET", f"/api/actions/{name}")["document"]
        except ApiError as error:
            if error.status == 404:
                return None
            raise
    return found


def rule(name: str) -> str | None:
    found = stored(name)
    return None if found is None else str(found["when"]["cron_rule"])


def row(name: str) -> Any:
    return Schedule.objects.get(pk=name)


@contextmanager
def no_server() -> Iterator[None]:
    """Let nobody answer at the server's address."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with override_settings(MINUTEBOOK_URL=f"http://127.0.0.1:{taken.getsockname()[1]}"):
            yield


@contextmanager
def meanwhile(act: Any) -> Iterator[None]:
    """Do something while the server is asked for the first time."""
    apply = Client.apply
    done: list[Any] = []

    def first(self: Client, documents: Any) -> Any:
        if not done:
            done.append(act)
            act()
        return apply(self, documents)

    with mock.patch.object(Client, "apply", first):
        yield


class Placed(TransactionTestCase):
    def setUp(self) -> None:
        with actions.client() as server:
            for one in list(server.each("/api/actions")):
                server.call("DELETE", f"/api/actions/{one['uid']}")

    def order(self) -> tuple[Order, str]:
        made = Order.objects.create()
        return made, f"shop.order:{made.pk}"

    def test_an_order_that_is_rolled_back_leaves_nothing(self) -> None:
        with self.assertRaises(RolledBack), transaction.atomic():
            order, name = self.order()
            remind(order)
            raise RolledBack

        self.assertIsNone(stored(name))
        self.assertEqual(Schedule.objects.count(), 0)

    def test_a_placed_order_has_its_schedule_at_the_server(self) -> None:
        with transaction.atomic():
            order, name = self.order()
            remind(order, queue="shop", policy={"look_back": "PT1H"})
            self.assertEqual(row(name).state, "pending")
            self.assertIsNone(stored(name))

        self.assertEqual(
            stored(name),
            {
                "name": name,
                "owner": name,
                "operations": {
                    "celery_task": {"task": TASK, "args": [order.pk], "kwargs": {}, "queue": "shop"}
                },
                "when": {"cron_rule": DAILY, "timezone": "Europe/Paris"},
                "policy": {"look_back": "PT1H"},
            },
        )
        self.assertEqual(row(name).state, "sent")

    def test_a_rule_is_a_cron_rule_an_interval_a_date_or_a_document(self) -> None:
        order, name = self.order()
        at = datetime(2126, 3, 1, 9, tzinfo=timezone.utc)
        for when, key, value in (
            (timedelta(minutes=5), "every", "PT5M"),
            (at, "due_date", "2126-03-01T09:00:00+00:00"),
            ({"solar": "sunset", "lat": 48.85, "lon": 2.35}, "solar", "sunset"),
        ):
            remind(order, when)
            self.assertEqual(stored(name)["when"][key], value)  # type: ignore[index]

        with self.assertRaisesRegex(ValueError, "give it a time zone"):
            remind(order, datetime(2126, 3, 1))  # noqa: DTZ001

    def test_a_server_that_was_away_gets_the_newest(self) -> None:
        with no_server():
            order, name = self.order()
            remind(order)
            remind(order, HOURLY)
            self.assertEqual(row(name).state, "pending")
            self.assertIn("does not answer", row(name).detail)
            with self.assertRaisesRegex(CommandError, "1 pending: The server does not answer"):
                call_command("minutebook_sync")

        said = StringIO()
        call_command("minutebook_sync", stdout=said)

        self.assertEqual(said.getvalue(), "1 sent, 0 refused, 0 pending\n")
        self.assertEqual(rule(name), HOURLY)
        self.assertEqual((row(name).state, row(name).detail), ("sent", ""))

    def test_a_transaction_waits_once_for_the_server(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}"
            wait = mock.patch("minutebook.django.sending.TIMEOUT_S", 0.1)
            asked = mock.patch.object(Client, "apply", autospec=True, side_effect=Client.apply)
            with override_settings(MINUTEBOOK_URL=url), wait, asked as applied:
                with transaction.atomic():
                    order, _ = self.order()
                    for key in ("a", "b", "c"):
                        remind(order, key=key)
                self.assertEqual(applied.call_count, 1)

        details = Schedule.objects.values_list("detail", flat=True)
        self.assertEqual({"The server does not answer: timed out"}, set(details))
        self.assertEqual(sync(), {"sent": 2, "pending": 1})

    def test_one_that_always_fails_keeps_no_other_from_the_server(self) -> None:
        (broken, name), (order, other) = self.order(), self.order()
        with no_server():
            remind(broken)
            remind(order)
        apply = Client.apply

        def fails(self: Client, documents: Any) -> Any:
            if documents[0]["name"] == name:
                raise ApiError(500, "about:blank", "it broke", ())
            return apply(self, documents)

        with mock.patch.object(Client, "apply", fails):
            self.assertEqual(sync(), {"sent": 1, "pending": 1})

        self.assertEqual((row(name).detail, row(other).state), ("it broke", "sent"))

    def test_the_reason_of_a_refusal_is_in_the_row(self) -> None:
        order, name = self.order()
        remind(order, "99 * * * *")

        refused = row(name)
        self.assertEqual(refused.state, "refused")
        self.assertIn("when.cron_rule '99 * * * *'", refused.detail)
        self.assertEqual(sync(), {"pending": 0})
        self.assertEqual(sync(refused=True), {"refused": 1, "pending": 0})
        remind(order)
        self.assertEqual(row(name).state, "sent")

    def test_a_deleted_order_has_no_actions(self) -> None:
        order, name = self.order()
        remind(order)
        remind(order, HOURLY, key="again")
        with self.assertRaises(RolledBack), transaction.atomic():
            UrgentOrder.objects.get().delete()
            raise RolledBack
        self.assertEqual((rule(name), rule(f"{name}:again")), (DAILY, HOURLY))

        Order.objects.all().delete()

        self.assertIsNone(stored(name))
        self.assertIsNone(stored(f"{name}:again"))
        self.assertEqual(Schedule.objects.count(), 0)

    def test_a_proxy_ends_what_its_model_owns(self) -> None:
        _, name = self.order()
        remind(UrgentOrder.objects.get())
        UrgentOrder.objects.get().delete()

        self.assertIsNone(stored(name))

    def test_an_order_that_stays_without_its_child_keeps_its_schedules(self) -> None:
        gift = GiftOrder.objects.create()
        name = f"shop.order:{gift.pk}"
        remind(gift)
        GiftOrder.objects.get().delete(keep_parents=True)
        self.assertEqual(rule(name), DAILY)

        other = GiftOrder.objects.create()
        remind(other)
        GiftOrder.objects.get().delete()

        self.assertEqual([one.pk for one in Schedule.objects.all()], [name])

    def test_a_decorated_proxy_lets_its_model_own_them(self) -> None:
        for kind in (Customer, Regular, Debtor):
            debtor = Debtor.objects.create()
            name = f"shop.customer:{debtor.pk}"
            remind(debtor)
            self.assertEqual(rule(name), DAILY)
            kind.objects.get().delete()
            self.assertIsNone(stored(name))

    def test_another_server_or_app_has_not_ended_it(self) -> None:
        order, name = self.order()
        elsewhere = (
            ({"MINUTEBOOK_APP": "elsewhere"}, 'small app "elsewhere" is unknown'),
            ({"MINUTEBOOK_URL": f"{settings.MINUTEBOOK_URL}/x"}, "the server answered 404"),
        )
        for other, why in elsewhere:
            remind(order)
            with override_settings(**other):
                unschedule(order)
            self.assertEqual((row(name).state, row(name).detail), ("pending", why))
            self.assertEqual(sync(), {"sent": 1, "pending": 0})
            self.assertIsNone(stored(name))

    def test_an_order_deleted_while_the_server_is_away_ends_later(self) -> None:
        order, name = self.order()
        remind(order)
        with no_server():
            order.delete()
        self.assertEqual(rule(name), DAILY)

        self.assertEqual(sync(), {"sent": 1, "pending": 0})

        self.assertIsNone(stored(name))
        self.assertEqual(Schedule.objects.count(), 0)

    def test_one_of_several_schedules_ends(self) -> None:
        order, name = self.order()
        remind(order)
        remind(order, HOURLY, key="again")

        self.assertEqual(unschedule(order, "again"), 1)
        self.assertEqual(unschedule(order, "again"), 0)

        self.assertIsNone(stored(f"{name}:again"))
        self.assertEqual(rule(name), DAILY)
        remind(order, HOURLY, key="a/b ?")
        self.assertEqual(rule(f"{name}:a%252Fb%2520%253F"), HOURLY)
        self.assertEqual(unschedule(order), 2)
        self.assertEqual(Schedule.objects.count(), 0)
        with actions.client() as server:
            self.assertEqual(list(server.each("/api/actions")), [])

    def test_a_schedule_that_ended_in_the_same_transaction_begins_anew(self) -> None:
        order, name = self.order()
        remind(order)
        with transaction.atomic():
            unschedule(order)
            remind(order, HOURLY)

        self.assertEqual(rule(name), HOURLY)

    def test_what_changes_while_it_is_sent_is_sent_again(self) -> None:
        order, name = self.order()
        with meanwhile(lambda: remind(order, HOURLY)):
            remind(order)

        self.assertEqual(rule(name), HOURLY)
        self.assertEqual((row(name).version, row(name).state), (2, "sent"))

    def test_what_ends_while_it_is_sent_ends(self) -> None:
        order, name = self.order()
        with meanwhile(lambda: unschedule(order)):
            remind(order)

        self.assertIsNone(stored(name))
        self.assertEqual(Schedule.objects.count(), 0)

    def test_what_a_process_left_half_sent_is_sent_after_a_minute(self) -> None:
        order, name = self.order()
        with no_server():
            remind(order)
        Schedule.objects.update(claimed_at=Now())
        self.assertEqual(sync(), {"pending": 1})
        self.assertIsNone(stored(name))

        Schedule.objects.update(claimed_at=Now() - timedelta(seconds=61))

        self.assertEqual(sync(), {"sent": 1, "pending": 0})
        self.assertEqual(rule(name), DAILY)

    def test_a_request_without_an_answer_may_still_arrive(self) -> None:
        order, name = self.order()
        remind(order)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}"
            wait = mock.patch("minutebook.django.sending.TIMEOUT_S", 0.1)
            with override_settings(MINUTEBOOK_URL=url), wait:
                remind(order, HOURLY)

        self.assertIn("does not answer", row(name).detail)
        remind(order, "0 8 * * *")
        self.assertEqual(rule(name), DAILY)
        Schedule.objects.update(claimed_at=Now() - timedelta(seconds=61))
        sync()
        self.assertEqual(rule(name), "0 8 * * *")

    def test_a_schedule_is_named_for_its_object(self) -> None:
        account = Account.objects.create(name="a b:c/ä")
        remind(account)

        self.assertEqual(row("shop.account:a%20b%3Ac%2F%C3%A4").state, "sent")
        account.delete()
        self.assertEqual(Schedule.objects.count(), 0)
        with self.assertRaisesRegex(ValueError, "save the object first"):
            remind(Order())
        with self.assertRaisesRegex(TypeError, "decorate the model Schedule"):
            remind(Schedule())
        with self.assertRaisesRegex(TypeError, "has no 'polcy'"):
            remind(Order.objects.create(), polcy={})
        with self.assertRaisesRegex(TypeError, r"such as \('Lyon',\)"):
            schedule(Order.objects.create(), when=DAILY, task=TASK, args=("Lyon"))
        with self.assertRaisesRegex(
            ValueError, "over 200 characters; shorten the key: shop.order:"
        ):
            remind(Order.objects.create(), key="k" * 200)


class WithoutServer(TestCase):
    def test_a_test_case_sends_nothing(self) -> None:
        order = Order.objects.create()
        with no_server(), self.captureOnCommitCallbacks() as sends:
            remind(order)

        self.assertEqual(len(sends), 1)
        self.assertEqual(row(f"shop.order:{order.pk}").document["when"]["cron_rule"], DAILY)
        self.assertEqual(row(f"shop.order:{order.pk}").detail, "")
