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
        proxy = True


class GiftOrder(Order):
    """A child: it has a table of its own, and each has a row in that of its parent."""

    wish = models.CharField(max_length=50, default="")


class Customer(models.Model):
    """As a model of another application: it is not decorated."""


class Regular(Customer):
    """A proxy that was made before another one was decorated."""

    class Meta:
        proxy = True


@owns_schedules
class Debtor(Customer):
    """A proxy that is decorated: the customers own the schedules."""

    class Meta:
        proxy = True


@owns_schedules
class Account(models.Model):
    """Its primary key is a text."""

    name = models.CharField(max_length=250, primary_key=True)
