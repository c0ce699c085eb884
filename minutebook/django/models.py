"""Schedules as the project's database has them, and the model that permissions are about."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

# How a schedule stands at the server.
STATES = [("pending", "Pending"), ("sent", "Sent"), ("refused", "Refused")]


class Action(models.Model):
    """A scheduled action of the server."""

    uid = models.UUIDField(primary_key=True)
    name = models.CharField(max_length=200)

    class Meta:
        """Without a table, but with permissions: add, change, delete, view and run."""

        managed = False
        app_label = "minutebook"
        verbose_name = "scheduled action"
        permissions: ClassVar = [("run_action", "Can run scheduled action")]

    def __str__(self) -> str:
        return str(self.name)


class Schedule(models.Model):
    """An action that an object of the project owns, as it should be at the server."""

    # That of the action.
    name = models.CharField(max_length=200, primary_key=True)
    owner = models.CharField(max_length=200, db_index=True)
    # None once the action is to be deleted: the row goes when the server has done so.
    document = models.JSONField(null=True)
    # Counts the changes: what is sent is settled only if it is still the newest.
    version = models.PositiveBigIntegerField(default=1)
    state = models.CharField(max_length=10, choices=STATES, default="pending")
    # Why it is pending or refused, or what the server warns of.
    detail = models.TextField(blank=True)
    changed_at = models.DateTimeField()
    # Since when a process has been sending it; None for none.
    claimed_at = models.DateTimeField(null=True)

    class Meta:
        """With the permission to see it: the code that makes a row changes it."""

        app_label = "minutebook"
        verbose_name = "object's schedule"
        default_permissions = ("view",)
        indexes: ClassVar = [
            models.Index(fields=["state", "changed_at"], name="minutebook_to_send")
        ]

    def __str__(self) -> str:
        return str(self.name)
