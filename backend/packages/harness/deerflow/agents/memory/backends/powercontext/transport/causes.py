"""Why there is no usable connection, in fixed words: what an operator can correct, and nothing the peer said."""

from __future__ import annotations

import ssl
from typing import Final

import httpx

from ..errors import BY_HTTPS

# SSL_CERT_FILE is for the whole process: with one authority alone it would reach no model provider any more.
_TRUST: Final = 'put it and the public authorities into one file, and name that in SSL_CERT_FILE: cat "$(backend/.venv/bin/python -m certifi)" ca.pem > bundle.pem'
# OpenSSL's numbers of a certificate that is not accepted (X509_V_ERR_…).
_CERTIFICATES: Final = {
    9: "the server's certificate is not valid yet: check the clocks",
    10: "the server's certificate has expired: renew it",
    18: "the server's certificate is self-signed: " + _TRUST,
    19: "the server's certificate is from an authority that is not trusted: " + _TRUST,
    20: "the server's certificate is from an authority that is not trusted: " + _TRUST,
    21: f"the server's certificate is from an authority that is not trusted, or a certificate in between is missing: let the server send the whole chain, or {_TRUST}",
    62: "the server's certificate is for another name: use that name in POWERCONTEXT_DEERFLOW_BASE_URL, or a certificate for this one",
    64: "the server's certificate is for another address: use its name in POWERCONTEXT_DEERFLOW_BASE_URL, or a certificate for this address",
}
NO_TLS: Final = "no TLS connection: is the certificate trusted, and is this an https port?"
PLAIN_PORT: Final = "what answers there speaks no TLS: is this an http port? Then POWERCONTEXT_DEERFLOW_BASE_URL has to begin with http:// (on this machine only)"

_OPENINGS: Final = {
    b"SSH-": "an SSH server answers there: check the port in POWERCONTEXT_DEERFLOW_BASE_URL",
    b"-ERR": "a Redis server, or one like it, answers there: check the port in POWERCONTEXT_DEERFLOW_BASE_URL",
    b"-DEN": "a Redis server, or one like it, answers there: check the port in POWERCONTEXT_DEERFLOW_BASE_URL",
    b"+OK": "a mail server, or one like it, answers there: check the port in POWERCONTEXT_DEERFLOW_BASE_URL",
    b"220 ": "a mail or FTP server answers there: check the port in POWERCONTEXT_DEERFLOW_BASE_URL",
    b"\x15\x03": "an https port answers there: POWERCONTEXT_DEERFLOW_BASE_URL has to begin with https://",
}


def of_failed_handshake(error: BaseException | None) -> str:
    """Return why TLS failed; ``error`` is what the ssl module raised."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _CERTIFICATES.get(
            error.verify_code,
            "the server's certificate is not accepted: check it, and SSL_CERT_FILE",
        )
    if isinstance(error, ssl.SSLError) and error.reason in (
        "WRONG_VERSION_NUMBER",
        "HTTP_REQUEST",
        "UNKNOWN_PROTOCOL",
        "RECORD_LAYER_FAILURE",
        "PACKET_LENGTH_TOO_LONG",
    ):
        return PLAIN_PORT
    return NO_TLS


def of_redirect(origin: httpx.URL, location: str) -> str:
    """Return where a redirect leads, by the kind of host alone."""
    try:
        target = origin.join(location)
    except (httpx.InvalidURL, UnicodeError, ValueError):
        return "and leads nowhere that can be read"
    if target.raw_host != origin.raw_host:
        return "and leads to another host"
    return BY_HTTPS if (target.scheme, origin.scheme) == ("https", "http") else "and leads to another path or port of this host"


def of_opening(opening: bytes) -> str | None:
    """Return what speaks, if a reply that begins with ``opening`` is no HTTP; ``None`` if it is, or may yet be."""
    if b"HTTP/"[: len(opening)] == opening[:5]:
        return None
    return next(
        (reason for start, reason in _OPENINGS.items() if opening.startswith(start)),
        "what answers there speaks no HTTP: check the port in POWERCONTEXT_DEERFLOW_BASE_URL",
    )
