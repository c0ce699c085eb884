"""Carries out the examples of a page, in order, in a project that has django-celery-beat too."""

import re
import sys
import unittest
from pathlib import Path
from typing import Any

import django
from django.conf import settings

settings.INSTALLED_APPS.append("django_celery_beat")
django.setup()

from django.core.management import call_command

from minutebook.django.models import Schedule

call_command("migrate", run_syncdb=True, verbosity=0)
shown: dict[str, Any] = {"__name__": "page"}
blocks = re.findall(r"```python\n(.*?)```", Path(sys.argv[1]).read_text(), re.DOTALL)
made = [
    block
    for block in blocks
    # The project has these: its settings, and its model.
    if "INSTALLED_APPS" not in block and "class Order(" not in block
]
for block in made:
    exec(block, shown)
suite = unittest.defaultTestLoader.loadTestsFromTestCase(shown["Orders"])
assert unittest.TextTestRunner().run(suite).wasSuccessful()
shown["order"].save()
print(len(made), dict(shown["sync"]()))
for one in Schedule.objects.order_by("name"):
    print(one.name, one.state, one.detail)
