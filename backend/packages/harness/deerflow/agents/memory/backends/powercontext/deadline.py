"""When a call has to end. The one type for it, so that nobody mistakes a length of time for a point in time."""

from __future__ import annotations

import threading
import time
from typing import Self


class Deadline:
    """The point in time at which a call ends, whatever it is doing.

    It also knows whether the call was cancelled before, and whether it wrote.

    Attributes:
        at: The point on ``time.monotonic()``.
    """

    __slots__ = ("_cancelled", "_origin", "_share", "_wrote", "at")

    def __init__(self, at: float, origin: Deadline | None = None, share: float = 1.0) -> None:
        self.at = at
        self._origin: Deadline = origin or self
        self._share = share
        self._cancelled = self._wrote = False

    @classmethod
    def after(cls, seconds: float) -> Self:
        """Return the deadline of a call that begins now and may take ``seconds``."""
        return cls(time.monotonic() + seconds)

    def within(self, seconds: float) -> Deadline:
        """Return the deadline of a step of this call: ``seconds`` from now, but never later than the call's own.

        Cancelling the call cancels its steps.
        """
        return Deadline(min(self.at, time.monotonic() + seconds), self._origin)

    def sharing(self, share: float) -> Deadline:
        """Return the deadline of a question that leaves time for the next one.

        Its reply may take ``share`` of what is left when it goes out.

        To connect it may take all of it, since the next question uses the same connection.
        """
        return Deadline(self.at, self._origin, share)

    def reply_by(self) -> float:
        """Return the point in time by which the reply to a request that goes out now has to be there."""
        return time.monotonic() + self._share * self.left()

    def left(self) -> float:
        """Return the seconds that are left, 0.0 if there are none."""
        return max(0.0, self.at - time.monotonic())

    def cancel(self) -> None:
        """Let no further exchange of this call begin; one under way goes on."""
        self._origin._cancelled = True

    def write_begins(self) -> None:
        """Note that from now on the server may have received a write of this call."""
        self._origin._wrote = True

    @property
    def wrote(self) -> bool:
        """Whether the server may have received a write of this call."""
        return self._origin._wrote

    @property
    def cancelled(self) -> bool:
        """Whether the call was cancelled, or the process is ending."""
        return self._origin._cancelled or not threading.main_thread().is_alive()
