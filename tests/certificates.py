"""Certificates that a test's own servers show, and that only the test trusts."""

import subprocess
from pathlib import Path


def self_signed(folder: Path, name: str = "IP:127.0.0.1") -> tuple[Path, Path]:
    """(certificate, key) for one day: PEM files in `folder`. `name` is an alternative name, as openssl takes it."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=test"),
            *("-addext", f"subjectAltName={name}", "-keyout", str(key), "-out", str(cert)),
        ],
        check=True,
        capture_output=True,
    )
    return cert, key
