"""Which certificates are trusted: what SSL_CERT_FILE and SSL_CERT_DIR name, or the public authorities.

Why a server's certificate is not accepted is told in ``causes``.
"""

from __future__ import annotations

import os
import ssl

import httpx

from ..errors import PowerContextConfigurationError


def trusted_certificates() -> ssl.SSLContext:
    """Return the context with which every connection is made.

    Raises:
        PowerContextConfigurationError: They cannot be read. The message names the variable, no value.
    """
    log = os.environ.get("SSLKEYLOGFILE")
    if log and not _can_be_written(log):  # Python's ssl module opens it
        raise PowerContextConfigurationError(
            "SSLKEYLOGFILE does not name a file that can be written; unset it for this process",
        )
    folder = os.environ.get("SSL_CERT_DIR")
    # a folder that is not there would pass for an empty one
    if not folder or os.environ.get("SSL_CERT_FILE") or os.path.isdir(folder):
        try:
            return httpx.create_ssl_context()  # honours both
        except OSError:  # ssl.SSLError is one
            pass
    # the second counts only without the first
    name = "SSL_CERT_FILE" if os.environ.get("SSL_CERT_FILE") else "SSL_CERT_DIR"
    raise PowerContextConfigurationError(
        f"{name} does not name certificates that can be read; correct it, or unset it for this process",
    )


def _can_be_written(path: str) -> bool:
    try:
        with open(path, "ab"):
            return True
    except OSError:
        return False
