"""The demo small app, loaded by `minutebook up --demo`."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

from data.settings import settings_in
from models.store.people import users
from models.store.tenants import storing
from models.tenant.document import parse_small_app
from models.users import parse_users
from runtime.logs.events import EventLog
from scheduler.changes import change
from scheduler.changes.default_actions import give_maintenance
from services.files import documents_in, read_documents, read_text
from services.installation import Installation
from tasks.built_in import built_in_steps

logger = EventLog("minutebook.demo")

# A link to examples/demo, so that the package has the files.
FOLDER = Path(__file__).with_name("demo_files")


def load(installation: Installation) -> None:
    """Copy the demo's data under the data root and store its small app, users and actions.

    Loading twice changes nothing.
    """
    settings = settings_in(installation.settings)
    installation.publish()
    model = parse_small_app(read_documents(FOLDER / "app.json")[0][1])
    data = settings.effective_data_root / model.name
    shutil.copytree(FOLDER / "data", data, dirs_exist_ok=True)
    rows = json.loads(read_text(FOLDER / "users.json"))
    with installation.engine.begin() as connection:
        app, _ = storing.apply(connection, model)
        give_maintenance(connection, app, built_in_steps())
        users.import_users(connection, app.id, parse_users(rows, zone=app.zone))
    files = sorted((FOLDER / "actions").glob("*.json"))
    documents = documents_in(files)
    author = replace(Installation(settings.home, app.name).author, name="demo")
    for changed in change.apply_all(installation.engine, documents, author):
        logger.info("demo_action", "demo action {action}: {change}", changed.name, changed.change)
