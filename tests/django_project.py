"""A Django project whose admin has Minutebook's actions, served on loopback.

Run as a process of its own, because Django has one configuration a process.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from wsgiref.simple_server import WSGIRequestHandler, make_server

import httpx

PASSWORD = "correct horse"
ACTIONS = "/admin/minutebook/action/"
# The permissions of each member of the staff; `admin` has all.
STAFF = {
    "viewer": ["view_action"],
    "editor": ["view_action", "change_action", "add_action"],
    "runner": ["view_action", "run_action"],
    "nobody": [],
}


class Quiet(WSGIRequestHandler):
    """Logs nothing."""

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


def main(given: str) -> None:
    """Make the project with the settings given as JSON, print its port, and serve it."""
    import django
    from django.conf import settings

    settings.configure(
        SECRET_KEY="of a test",
        DEBUG=False,
        ALLOWED_HOSTS=["127.0.0.1"],
        ROOT_URLCONF="django_project",
        INSTALLED_APPS=[
            "django.contrib.admin", "django.contrib.auth", "django.contrib.contenttypes",
            "django.contrib.sessions", "django.contrib.messages", "django.contrib.staticfiles",
            "minutebook.django",
        ],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
            "django.contrib.messages.middleware.MessageMiddleware",
        ],
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "APP_DIRS": True,
                "OPTIONS": {
                    "context_processors": [
                        "django.template.context_processors.request",
                        "django.contrib.auth.context_processors.auth",
                        "django.contrib.messages.context_processors.messages",
                    ]
                },
            }
        ],
        STATIC_URL="/static/",
        USE_TZ=True,
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        **json.loads(given),
    )  # fmt: skip
    django.setup()
    _fill()
    from django.contrib.staticfiles.handlers import StaticFilesHandler
    from django.core.wsgi import get_wsgi_application

    served = StaticFilesHandler(get_wsgi_application())
    server = make_server("127.0.0.1", 0, served, handler_class=Quiet)
    print(server.server_port, flush=True)  # noqa: T201 - for the test
    server.serve_forever()


def _fill() -> None:
    from django.contrib.auth.models import Permission, User
    from django.core.management import call_command
    from django.utils import timezone

    from minutebook.django.models import Schedule

    call_command("migrate", verbosity=0)
    call_command("check", stdout=sys.stderr)
    why = {"state": "refused", "detail": "the server's reason"}
    Schedule.objects.create(name="nightly", owner="nightly", changed_at=timezone.now(), **why)
    User.objects.create_superuser("admin", password=PASSWORD)
    for name, permissions in STAFF.items():
        user = User.objects.create_user(name, password=PASSWORD, is_staff=True)
        user.user_permissions.set(Permission.objects.filter(codename__in=permissions))


def __getattr__(name: str) -> object:
    """Return the URLs, which Django reads when it is set up."""
    if name != "urlpatterns":
        raise AttributeError(name)
    from django.contrib import admin
    from django.urls import path

    return [path("admin/", admin.site.urls)]


class Browser:
    """A member of the staff who is signed in, and follows redirects."""

    def __init__(self, url: str, name: str) -> None:
        self.http = httpx.Client(base_url=url, follow_redirects=True, timeout=60)
        self.post("/admin/login/", username=name, password=PASSWORD, next=ACTIONS)

    def get(self, path: str, **params: str) -> httpx.Response:
        return self.http.get(path, params=params)

    def post(self, path: str, **fields: str) -> httpx.Response:
        """Send a form as the page of its address shows it."""
        page = self.http.get(path if path.endswith(("login/", "add/", "change/")) else ACTIONS)
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)
        given = {"csrfmiddlewaretoken": token[1] if token else self.http.cookies["csrftoken"]}
        return self.http.post(path, data=given | fields, headers={"Referer": str(page.url)})


@contextmanager
def project(folder: Path, python: str = sys.executable, **settings: str) -> Iterator[str]:
    """Serve a Django project by a Python that has Django and minutebook; yield its address."""
    database = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(folder / "django.db")}
    given = json.dumps({"DATABASES": {"default": database}, **settings})
    command = [python, __file__, given]
    with subprocess.Popen(command, cwd=folder, env={}, stdout=subprocess.PIPE, text=True) as served:
        assert served.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(served.stdout.readline())}"
        finally:
            served.terminate()


def text_of(page: httpx.Response) -> str:
    return unescape(re.sub(r"\s+", " ", page.text))


if __name__ == "__main__":
    main(sys.argv[1])
