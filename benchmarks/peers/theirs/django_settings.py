"""Django's settings for django-celery-beat."""

import os
from urllib.parse import urlsplit

_url = urlsplit(os.environ["PEER_DATABASE"])
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": _url.hostname,
        "PORT": _url.port,
        "USER": _url.username,
        "NAME": _url.path.strip("/"),
    }
}
INSTALLED_APPS = ["django_celery_beat"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
SECRET_KEY = "of a benchmark"
TIME_ZONE = os.environ["PEER_ZONE"]
USE_TZ = True
