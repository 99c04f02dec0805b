"""Which of the environment's proxies leads to the server, if any; asked once, with the settings."""

from __future__ import annotations

import re
import ssl
import urllib.request

import httpx

from ..errors import PowerContextConfigurationError

_HOST = re.compile(rb"[A-Za-z0-9._:-]+")


def environment_proxy(url: httpx.URL) -> str | None:
    """Return the URL of the proxy that ``HTTPS_PROXY`` or ``ALL_PROXY`` names for ``url``, or ``None``.

    Call it for https to another machine only: what stays on this machine never goes through a proxy.

    Raises:
        PowerContextConfigurationError: httpx cannot parse one of these variables, or the proxy is not an ``http://``
            one.
    """
    try:
        # The host's other clients go through httpx too, so httpx is the judge; the context only spares it loading certificates.
        httpx.Client(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)).close()
    except (httpx.InvalidURL, ValueError, ImportError):
        readable = False
    else:
        readable = True
    if not readable:
        raise PowerContextConfigurationError("HTTP_PROXY, HTTPS_PROXY, ALL_PROXY or NO_PROXY has a value httpx cannot use; correct it, or unset it for this process")
    proxies = urllib.request.getproxies()
    proxy = proxies.get("https") or proxies.get("all")
    if not proxy or _bypasses(url, proxies.get("no", "")):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if httpx.URL(proxy).scheme != "http" or not has_usable_address(httpx.URL(proxy)):
        raise PowerContextConfigurationError("HTTPS_PROXY or ALL_PROXY must name an http:// proxy, or NO_PROXY must list the host of POWERCONTEXT_DEERFLOW_BASE_URL")
    return proxy


def _bypasses(url: httpx.URL, no_proxy: str) -> bool:
    """Tell whether ``no_proxy`` lists the server: what Python's own clients understand, and ``*`` and URLs as httpx does."""
    entries = [entry.strip() for entry in no_proxy.split(",")]
    urls = [httpx.URL(entry) for entry in entries if "://" in entry]
    named = any(entry.raw_host == url.raw_host and entry.port in (None, url.port) for entry in urls)
    return "*" in entries or named or urllib.request.proxy_bypass(f"{host_of(url)}:{url.port or 443}")


def host_of(url: httpx.URL) -> str:
    """Return the host as it goes out. ``url.host`` decodes it, and fails for some names."""
    return url.raw_host.decode("ascii")


def has_usable_address(url: httpx.URL) -> bool:
    """Tell whether ``url`` has a host and a port one can connect to. httpx lets ``http://[x`` and port 99999 pass."""
    return _HOST.fullmatch(url.raw_host) is not None and (url.port is None or 0 < url.port < 65536)
