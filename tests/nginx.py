"""A throw-away nginx on a loopback port, which serves what its configuration says."""

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runtime.clock import wait_for
from tests.servers import START_S, installed, temporary_folder

AROUND = """
daemon off;
master_process off;
worker_processes 1;
pid {folder}/pid;
error_log {folder}/log;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {servers}
}}
"""


def listens(port: int) -> bool:
    """Whether somebody takes connections on a loopback port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def nginx(servers: str, port: int) -> Iterator[Path]:
    """Run nginx with these blocks `server` during the block; skips the test without nginx."""
    binary = installed("nginx")
    if binary is None:
        pytest.skip("no nginx here, and no wheel brings one")
    folder = temporary_folder()
    file = folder / "nginx.conf"
    file.write_text(AROUND.format(folder=folder, servers=servers))
    log = folder / "log"
    command = [binary, "-e", str(log), "-c", str(file)]
    process = subprocess.Popen(command, env={**os.environ}, stderr=subprocess.DEVNULL)
    try:
        if not wait_for(lambda: listens(port), START_S):
            raise RuntimeError(log.read_text()[-2000:])
        yield folder
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(START_S)
        shutil.rmtree(folder, ignore_errors=True)
