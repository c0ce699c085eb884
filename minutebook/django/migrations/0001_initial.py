"""The permissions of actions, and the table of schedules."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models

STATES = [("pending", "Pending"), ("sent", "Sent"), ("refused", "Refused")]


class Migration(migrations.Migration):
    """The first one."""

    initial = True
    dependencies: ClassVar[list[tuple[str, str]]] = []
    operations: ClassVar = [
        migrations.CreateModel(
            name="Action",
            fields=[
                ("uid", models.UUIDField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=200)),
            ],
            options={
                "verbose_name": "scheduled action",
                "permissions": [("run_action", "Can run scheduled action")],
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="Schedule",
            fields=[
                ("name", models.CharField(max_length=200, primary_key=True, serialize=False)),
                ("owner", models.CharField(db_index=True, max_length=200)),
                ("document", models.JSONField(null=True)),
                ("version", models.PositiveBigIntegerField(default=1)),
                ("state", models.CharField(choices=STATES, default="pending", max_length=10)),
                ("detail", models.TextField(blank=True)),
                ("changed_at", models.DateTimeField()),
                ("claimed_at", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name": "object's schedule",
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(fields=["state", "changed_at"], name="minutebook_to_send")
                ],
            },
        ),
    ]
