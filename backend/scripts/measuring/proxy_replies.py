"""What proxies, gateways and other products answer in PowerContext's place. The audit, the soak and the fuzz share it."""

from __future__ import annotations

STATUSES = (
    *(200, 301, 307, 400, 401, 403, 404, 405, 407, 408, 409, 411, 413, 414, 421, 425, 429, 431, 451, 499),
    *(500, 501, 502, 503, 504, 505, 507, 508, 511, 520, 521, 522, 524, 525, 530),
)

PAGES = {
    "html": ("text/html", b"<html><title>A proxy's page</title></html>"),
    "empty": ("text/plain", b""),
    "JSON of another product": ("application/json", b'{"message": "no Route matched with those values", "request_id": "9f1c"}'),
    "an envelope like PowerContext's": ("application/json", b'{"error": {"code": "policy_denied", "message": "A proxy\'s text.", "details": null}}'),
}
"""Whole bodies and their types. None has a code of PowerContext's own, so none proves that PowerContext did nothing."""


def proxy_reply(amount: float) -> bytes:
    """Return the bytes of the reply that ``amount``, from 0 to below 1, stands for: each status with each page."""
    position = int(amount * len(STATUSES) * len(PAGES))
    content_type, page = list(PAGES.values())[position % len(PAGES)]
    status = STATUSES[position // len(PAGES)]
    head = [f"HTTP/1.1 {status} X", f"Content-Type: {content_type}", f"Content-Length: {len(page)}"]
    head += ["Location: /elsewhere"] if 300 <= status < 400 else []
    return "\r\n".join(head).encode() + b"\r\n\r\n" + page
