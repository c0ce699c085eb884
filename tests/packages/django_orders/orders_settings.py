"""Django's settings of a shop whose orders own schedules."""

import json
import os

DATABASES = {"default": json.loads(os.environ["SHOP_DATABASE"])}
INSTALLED_APPS = ["minutebook.django", "shop"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
SECRET_KEY = "of a test"
TIME_ZONE = "Europe/Paris"
USE_TZ = True
MINUTEBOOK_URL = os.environ["SHOP_MINUTEBOOK"]
MINUTEBOOK_TOKEN = os.environ["SHOP_TOKEN"]
