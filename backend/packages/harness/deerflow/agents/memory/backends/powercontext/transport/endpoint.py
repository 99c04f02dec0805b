"""The one configured server, and how it is reached.

That is its URL, the proxy on the way, and the certificates that are trusted.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field

import httpx

from .certificates import trusted_certificates
from .proxies import proxy_to


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The one configured server. Shows neither its address nor a proxy's password.

    Attributes:
        url: The base URL.
        proxy: The proxy on the way, or ``None``.
        tls: Which certificates are trusted; ``None`` for plain http.
    """

    url: httpx.URL = field(repr=False)
    proxy: httpx.Proxy | None = field(repr=False)
    tls: ssl.SSLContext | None = field(repr=False)


def find_endpoint(url: httpx.URL) -> Endpoint:
    """Return how to reach ``url`` from this environment.

    Raises:
        PowerContextConfigurationError: The proxy or the certificates cannot be used. The message names the variables,
            no value.
    """
    return Endpoint(url, proxy_to(url), trusted_certificates() if url.scheme == "https" else None)
