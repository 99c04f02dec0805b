"""No line of httpcore's about our exchanges reaches a log."""

from __future__ import annotations

import logging
import threading


class _Quiet(logging.Filter):
    """Drops what httpcore logs about our exchanges, which quotes the server.

    It is all at DEBUG; other users of httpcore keep theirs.
    """

    _thread = threading.local()

    def filter(self, record: logging.LogRecord) -> bool:
        return not getattr(self._thread, "inside", False)

    def __enter__(self) -> None:
        self._thread.inside = True

    def __exit__(self, *exception: object) -> None:
        self._thread.inside = False


quiet = _Quiet()
for _logger in ("httpcore.connection", "httpcore.http11", "httpcore.proxy"):
    logging.getLogger(_logger).addFilter(quiet)
