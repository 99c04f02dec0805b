"""What operators read of capture in the log: once when something goes wrong, once when it is well again.

No text, no id, no Scope.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter

from ..diagnostics import describe
from ..errors import PowerContextError, PowerContextOutboxError
from ..transport.forking import in_forked_children

logger = logging.getLogger(__name__)


def announce(mode: str) -> None:
    """Say what capture does, before anything is sent."""
    logger.warning(
        "PowerContext capture is on (%s): what people with a binding write is sent to be learned from (with `turns`, the final answers, too). PowerContext cannot delete a source: "
        "forgetting a memory leaves it, and the outbox's purge only forgets what has not been sent.",
        mode,
    )


class CaptureLog:
    """Counts troubles by their name and logs when one begins and when it is over. Safe for any number of threads."""

    def __init__(self) -> None:
        self._start()
        in_forked_children(self._start)

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._troubles: Counter[str] = Counter()

    def _begins(self, trouble: str, count: int = 1) -> bool:
        with self._lock:
            self._troubles[trouble] += count
            return self._troubles[trouble] == count

    def _ends(self, trouble: str) -> int:
        with self._lock:
            return self._troubles.pop(trouble, 0)

    def failed(self, error: PowerContextError, elapsed_seconds: float) -> None:
        """Note that something could not be sent; it stays in the outbox."""
        level = logging.WARNING if self._begins("sending") else logging.DEBUG
        logger.log(
            level,
            "PowerContext capture cannot send (%s). It waits in the outbox and is tried again.",
            describe(error, elapsed_seconds),
        )

    def sent(self) -> None:
        """Note that something was sent."""
        if failures := self._ends("sending"):
            logger.info("PowerContext capture sends again; failed attempts in between: %d.", failures)

    def parked(self, error: PowerContextError, elapsed_seconds: float) -> None:
        """Note that the server refused an entry."""
        level = logging.WARNING if self._begins("parked") else logging.DEBUG
        logger.log(
            level,
            "PowerContext refused captured text (%s). It is kept in the outbox and not sent again; `outbox status` counts it, `outbox retry` sends it again.",
            describe(error, elapsed_seconds),
        )

    def held(self) -> None:
        """Note that something waits for a person who has no binding, or another Scope, by now."""
        if self._begins("held"):
            logger.warning(
                "PowerContext capture holds text of people who have no binding to the Scope it was heard for. It is not sent; `outbox purge` forgets it.",
            )

    def expired(self, count: int) -> None:
        """Note that ``count`` entries waited too long."""
        logger.warning(
            "PowerContext capture dropped %d entries that could not be sent within POWERCONTEXT_DEERFLOW_CAPTURE_MAX_DAYS.",
            count,
        )

    def heard(self, counts: Counter[str]) -> None:
        """Note what became of conversations: the outbox works, and may be full."""
        if failures := self._ends("outbox"):
            logger.info("PowerContext capture works again; conversations it could not take in between: %d.", failures)
        if counts["expired"]:
            self.expired(counts["expired"])
        if refused := counts["refused"]:
            level = logging.WARNING if self._begins("full", refused) else logging.DEBUG
            logger.log(
                level,
                "PowerContext capture's outbox is full and took %d messages less. It takes new ones when what waits is sent.",
                refused,
            )
        elif counts["queued"] and (missed := self._ends("full")):
            logger.info("PowerContext capture's outbox has room again; messages it refused in between: %d.", missed)
        logger.debug(
            "PowerContext capture: %s.",
            ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "nothing new",
        )

    def missed(self, error: Exception) -> None:
        """Note that a conversation could not be read or queued; nothing of it is captured."""
        if isinstance(error, PowerContextOutboxError):
            self.outbox_failed(error)
        elif self._begins("reading"):
            logger.warning(
                "PowerContext capture could not read a conversation (%s). Nothing of it is captured.",
                type(error).__name__,
            )

    def busy(self) -> None:
        """Note that a conversation came while too many others wait for the disk."""
        if self._begins("outbox"):
            logger.warning("PowerContext capture's disk is too slow: a conversation is not captured.")

    def outbox_failed(self, error: PowerContextOutboxError) -> None:
        """Note that the outbox cannot be used."""
        if error.lasting:
            if self._begins("stopped"):
                logger.error("PowerContext capture stops until the Gateway is restarted: %s.", error)
        elif self._begins("outbox"):
            logger.error("PowerContext capture cannot use its outbox, so nothing is captured: %s.", error)
