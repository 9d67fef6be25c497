"""The TLS context of a server, and putting a certificate into it."""

import ssl
import tempfile
from pathlib import Path


def server_context() -> ssl.SSLContext:
    """A context without a certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def use_certificate(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Use this certificate from the next handshake on. Both are PEM."""
    # The ssl module only reads files; the key is on disk no longer than necessary.
    with tempfile.TemporaryDirectory(prefix="lam") as directory:
        chain_file, key_file = Path(directory, "tls.crt"), Path(directory, "tls.key")
        chain_file.write_bytes(certificate)
        key_file.touch(mode=0o600)
        key_file.write_bytes(key)
        context.load_cert_chain(chain_file, key_file)
