"""The rules about URLs: which may be the server's, what is wrong with another one, and which is on this machine."""

from __future__ import annotations

import ipaddress
import re

import httpx

_HOST = re.compile(rb"[A-Za-z0-9._:-]+")


def server_url(base_url: object) -> httpx.URL | None:
    """Return the parsed ``base_url``, or ``None`` if it is not one that memory may be sent to."""
    try:
        url = httpx.URL(base_url) if isinstance(base_url, str) else httpx.URL()
    except (httpx.InvalidURL, UnicodeError):
        return None
    safe = url.scheme == "https" or (url.scheme == "http" and is_loopback(url))
    return url if safe and has_usable_address(url) and not re.search(r"[\s@?#]", str(base_url)) else None


def url_fault(base_url: str) -> str:
    """Return which of ``server_url``'s rules ``base_url`` breaks beyond those of any text, quoting nothing of it."""
    scheme, mark, rest = base_url.partition("://")
    if not mark or scheme.lower() not in ("http", "https"):
        return "does not begin with http:// or https://"
    if "@" in rest:
        return "has a user name in it"
    if "?" in rest or "#" in rest:
        return "has a query or a fragment"
    url = parse(base_url)
    if url is None or not has_usable_address(url):
        return "has no usable host and port"
    return "is plain http:// to what is not surely this machine"


def is_loopback(url: httpx.URL) -> bool:
    """Tell whether ``url`` is on this machine.

    That is ``localhost``, 127.0.0.0/8 or ``::1``, the rule of PowerContext's own client.
    """
    host = host_of(url)
    if host.lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback and getattr(address, "ipv4_mapped", None) is None


def parse(text: str) -> httpx.URL | None:
    """Return ``text`` as a URL, or ``None``."""
    try:
        return httpx.URL(text)
    except (httpx.InvalidURL, UnicodeError):
        return None


def host_of(url: httpx.URL) -> str:
    """Return the host as it goes out. ``url.host`` decodes it, and fails for some names."""
    return url.raw_host.decode("ascii")


def has_usable_address(url: httpx.URL) -> bool:
    """Tell whether ``url`` has a host and a port one can connect to. httpx lets ``http://[x`` and port 99999 pass."""
    return _HOST.fullmatch(url.raw_host) is not None and (url.port is None or 0 < url.port < 65536)
