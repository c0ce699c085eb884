"""A throw-away nginx on a loopback port, which serves what its configuration says."""

import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.servers import START_S, await_answer, installed, launched, temporary_folder

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
    process = launched([binary, "-e", str(folder / "log"), "-c", str(file)], folder)
    try:
        await_answer(lambda: listens(port), folder)
        yield folder
    finally:
        process.terminate()
        process.wait(START_S)
        shutil.rmtree(folder, ignore_errors=True)
