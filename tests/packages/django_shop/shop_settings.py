"""Django's settings of the shop."""

import json
import os

DATABASES = {"default": json.loads(os.environ["SHOP_DATABASE"])}
INSTALLED_APPS = ["django_celery_beat"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
SECRET_KEY = "of a test"
TIME_ZONE = "Europe/Paris"
USE_TZ = True
