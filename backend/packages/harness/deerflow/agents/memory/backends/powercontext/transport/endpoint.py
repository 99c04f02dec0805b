"""Where the server is and how it is reached: the rules about its URL, the environment's proxies, trusted certificates."""

from __future__ import annotations

import ipaddress
import os
import re
import ssl
import urllib.request
from dataclasses import dataclass, field

import httpx

from ..errors import PowerContextConfigurationError

_HOST = re.compile(rb"[A-Za-z0-9._:-]+")


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


def server_url(base_url: object) -> httpx.URL | None:
    """Return the parsed ``base_url``, or ``None`` if it is not one that memory may be sent to."""
    try:
        url = httpx.URL(base_url) if isinstance(base_url, str) else httpx.URL()
    except (httpx.InvalidURL, UnicodeError):
        return None
    safe = url.scheme == "https" or (url.scheme == "http" and is_loopback(url))
    return url if safe and _has_usable_address(url) and not re.search(r"[\s@?#]", str(base_url)) else None


def url_fault(base_url: str) -> str:
    """Return which of ``server_url``'s rules ``base_url`` breaks beyond those of any text, quoting nothing of it."""
    scheme, mark, rest = base_url.partition("://")
    if not mark or scheme.lower() not in ("http", "https"):
        return "does not begin with http:// or https://"
    if "@" in rest:
        return "has a user name in it"
    if "?" in rest or "#" in rest:
        return "has a query or a fragment"
    url = _parse(base_url)
    if url is None or not _has_usable_address(url):
        return "has no usable host and port"
    return "is plain http:// to what is not surely this machine"


def is_loopback(url: httpx.URL) -> bool:
    """Tell whether ``url`` is on this machine: ``localhost``, 127.0.0.0/8 or ``::1``, the rule of PowerContext's own client."""
    host = _host_of(url)
    if host.lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback and getattr(address, "ipv4_mapped", None) is None


def find_endpoint(url: httpx.URL) -> Endpoint:
    """Return how to reach ``url`` from this environment. What stays on this machine never goes through a proxy.

    Raises:
        PowerContextConfigurationError: The proxy or the certificates cannot be used. The message names the variables,
            no value.
    """
    secure = url.scheme == "https"
    return Endpoint(url, _proxy_to(url) if secure and not is_loopback(url) else None, _trusted_certificates() if secure else None)


def _proxy_to(url: httpx.URL) -> httpx.Proxy | None:
    proxies = urllib.request.getproxies()
    address = proxies.get("https") or proxies.get("all")
    if not address or _bypasses(url, proxies.get("no", "")):
        return None
    proxy = _parse(address if "://" in address else f"http://{address}")
    if proxy is None or proxy.scheme != "http" or not _has_usable_address(proxy):
        raise PowerContextConfigurationError("HTTPS_PROXY or ALL_PROXY must name an http:// proxy, or NO_PROXY must list the host of POWERCONTEXT_DEERFLOW_BASE_URL")
    return httpx.Proxy(proxy)


def _bypasses(url: httpx.URL, no_proxy: str) -> bool:
    """Tell whether ``no_proxy`` lists the server: what Python's own clients understand, and ``*`` and URLs as httpx does.

    An entry that is no address concerns other requests.
    """
    entries = [entry.strip() for entry in no_proxy.split(",")]
    urls = [_parse(entry) for entry in entries if "://" in entry]
    named = any(entry is not None and entry.raw_host == url.raw_host and entry.port in (None, url.port) for entry in urls)
    return "*" in entries or named or bool(urllib.request.proxy_bypass(f"{_host_of(url)}:{url.port or 443}"))


def _trusted_certificates() -> ssl.SSLContext:
    log = os.environ.get("SSLKEYLOGFILE")
    if log and not _can_be_written(log):  # Python's ssl module opens it
        raise PowerContextConfigurationError("SSLKEYLOGFILE does not name a file that can be written; unset it for this process")
    folder = os.environ.get("SSL_CERT_DIR")
    if not folder or os.environ.get("SSL_CERT_FILE") or os.path.isdir(folder):  # a folder that is not there would pass for an empty one
        try:
            return httpx.create_ssl_context()  # honours both
        except OSError:  # ssl.SSLError is one
            pass
    name = "SSL_CERT_FILE" if os.environ.get("SSL_CERT_FILE") else "SSL_CERT_DIR"  # the second counts only without the first
    raise PowerContextConfigurationError(f"{name} does not name certificates that can be read; correct it, or unset it for this process")


def _can_be_written(path: str) -> bool:
    try:
        with open(path, "ab"):
            return True
    except OSError:
        return False


def _parse(text: str) -> httpx.URL | None:
    try:
        return httpx.URL(text)
    except (httpx.InvalidURL, UnicodeError):
        return None


def _host_of(url: httpx.URL) -> str:
    """Return the host as it goes out. ``url.host`` decodes it, and fails for some names."""
    return url.raw_host.decode("ascii")


def _has_usable_address(url: httpx.URL) -> bool:
    """Tell whether ``url`` has a host and a port one can connect to. httpx lets ``http://[x`` and port 99999 pass."""
    return _HOST.fullmatch(url.raw_host) is not None and (url.port is None or 0 < url.port < 65536)
