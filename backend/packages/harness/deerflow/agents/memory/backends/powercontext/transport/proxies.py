"""Which proxy of the environment is on the way to the server, if any."""

from __future__ import annotations

import urllib.request

import httpx

from ..errors import PowerContextConfigurationError
from .urls import has_usable_address, host_of, is_loopback, parse


def proxy_to(url: httpx.URL) -> httpx.Proxy | None:
    """Return the proxy on the way to ``url``, if any. What stays on this machine never goes through one.

    Raises:
        PowerContextConfigurationError: The proxy cannot be used. The message names the variables, no value.
    """
    if url.scheme != "https" or is_loopback(url):
        return None
    proxies = urllib.request.getproxies()
    address = proxies.get("https") or proxies.get("all")
    if not address or _bypasses(url, proxies.get("no", "")):
        return None
    proxy = parse(address if "://" in address else f"http://{address}")
    if proxy is None or proxy.scheme != "http" or not has_usable_address(proxy):
        raise PowerContextConfigurationError(
            "HTTPS_PROXY or ALL_PROXY must name an http:// proxy, or NO_PROXY must list the host of POWERCONTEXT_DEERFLOW_BASE_URL",
        )
    return httpx.Proxy(proxy)


def _bypasses(url: httpx.URL, no_proxy: str) -> bool:
    """Tell whether ``no_proxy`` lists the server.

    It takes what Python's own clients understand, and ``*`` and URLs as httpx does.

    An entry that is no address concerns other requests.
    """
    entries = [entry.strip() for entry in no_proxy.split(",")]
    urls = filter(None, (parse(entry) for entry in entries if "://" in entry))
    named = any(entry.raw_host == url.raw_host and entry.port in (None, url.port) for entry in urls)
    return "*" in entries or named or bool(urllib.request.proxy_bypass(f"{host_of(url)}:{url.port or 443}"))
