"""Orders, which own schedules."""

from django.db import models

from minutebook.django import owns_schedules


@owns_schedules
class Order(models.Model):
    """An order that customers are reminded of."""

    city = models.CharField(max_length=50, default="Paris")


class UrgentOrder(Order):
    """A proxy: an urgent order is an order."""

    class Meta:
        """Without a table."""

        proxy = True


@owns_schedules
class Account(models.Model):
    """Its primary key is a text."""

    name = models.CharField(max_length=250, primary_key=True)
