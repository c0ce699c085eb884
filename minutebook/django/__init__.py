"""Actions of the objects of a Django project, and of its admin: add it to INSTALLED_APPS.

@owns_schedules
class Order(models.Model): ...

with transaction.atomic():
    order = Order.objects.create(...)
    schedule(order, when="0 7 * * *", task="shop.tasks.remind", args=[order.pk])
"""

from minutebook.django.scheduling import owns_schedules, schedule, unschedule
from minutebook.django.sending import sync

__all__ = ["owns_schedules", "schedule", "sync", "unschedule"]
