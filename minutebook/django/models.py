"""The model that Django's permissions are about; nothing is stored in Django's database."""

from __future__ import annotations

from typing import ClassVar

from django.db import models


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
