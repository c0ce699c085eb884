"""A certificate for 127.0.0.1 that no authority signed, made by `openssl`."""

import shutil
import ssl
import subprocess
from pathlib import Path


def make_certificate(folder: Path) -> Path:
    """Return a file with the certificate and its key."""
    key, made = folder / "key.pem", folder / "both.pem"
    assert shutil.which("openssl"), "install openssl: TLS is tested with its certificate"
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
        f"-subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 -keyout {key} -out {made}"
    )
    subprocess.run(command.split(), check=True, capture_output=True)
    made.write_text(made.read_text() + key.read_text())
    return made


def tls_of_server(certificate: Path) -> ssl.SSLContext:
    """Return the TLS context of a server with the certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context
