"""A daemon of another tz release than the one that computed what is stored."""

from models.store import key_values
from models.store.key_values import KERNEL, TZ_RELEASE
from runtime.database import reading
from tests.acceptance.installation import Installation
from tests.acceptance.processes import ROOT, python


def test_a_daemon_of_an_older_release_refuses_to_start_and_changes_nothing(
    installation: Installation,
) -> None:
    installation.due_action()
    with installation.engine.begin() as connection:
        key_values.set_value(connection, KERNEL, "1")
        key_values.set_value(connection, TZ_RELEASE, "2999z")

    daemon = installation.daemon()
    code = daemon.ended()
    once = installation.processes.run(python(str(ROOT / "scheduler_server.py"), "--once"))

    assert (code, once.returncode) == (2, 2)
    for said in (daemon.text(), once.stderr):
        assert "tz 2999z" in said
        assert "upgrade this process (the tzdata package) and start it again first" in said
    assert installation.rows() == []
    assert installation.ticks() == []
    with reading(installation.engine) as connection:
        assert key_values.value(connection, TZ_RELEASE) == "2999z"
