"""Forgetting one memory. It is no longer recalled or found; the operator can bring it back in PowerContext."""

from __future__ import annotations

from ..deadline import Deadline
from ..process import shared_client
from ..settings.loading import PowerContextSettings
from ..settings.people import Binding
from .changing import MAX_STEP_SECONDS, AlreadySo, Change, Changed, NotChanged, Outcome
from .memories import Memory, Standing


class Forgetter:
    """Forgets memories through the process's client. Safe for any number of threads."""

    def __init__(self, settings: PowerContextSettings) -> None:
        self._settings = settings
        self._step_seconds = min(settings.remember_timeout_seconds, MAX_STEP_SECONDS)

    def forget(self, binding: Binding, citation: object, *, deadline: Deadline | None = None) -> Outcome:
        """Forget the memory that is cited, if it still says what the citation meant, and return what became of it.

        Args:
            binding: Whose memory.
            citation: What a model wrote for it; anything at all.
            deadline: Of the whole call, 27 s without one. Cancelling it lets no further step begin.
        """
        deadline = deadline or Deadline.after(3 * MAX_STEP_SECONDS)
        return _Forgetting(shared_client(self._settings), binding, citation, deadline, self._step_seconds).run()


class _Forgetting(Change):
    def settle(self, standing: Standing) -> AlreadySo | NotChanged | None:
        if standing.state == "forgotten":
            return AlreadySo(standing.text, standing.citation)
        if standing.state == "set_aside":
            return NotChanged("is_set_aside", None, standing.text, standing.citation)
        return None

    def write(self, memory: Memory, standing: Standing, deadline: Deadline) -> Changed:
        return Changed(standing.text, memory.forget(standing, deadline).citation)

    def confirm(self, before: Standing, after: Standing) -> Changed | None:
        if after.state == "forgotten" and (after.kind, after.text) == (before.kind, before.text):
            return Changed(after.text, after.citation, by_read_back=True)
        return None

    def may_yet_happen(self, before: Standing, after: Standing) -> bool:
        return (after.citation, after.state_version) == (before.citation, before.state_version)
