"""Correcting one memory. It keeps its id; the former text stays in PowerContext as a revision."""

from __future__ import annotations

from ..api.client import PowerContextClient
from ..deadline import Deadline
from ..process import shared_client
from ..settings.loading import PowerContextSettings
from ..settings.people import Binding
from .changing import MAX_STEP_SECONDS, AlreadySo, Change, Changed, NotChanged, Outcome
from .memories import Memory, Standing
from .outcomes import KINDS, normalize, refusal


class Corrector:
    """Corrects memories through the process's client. Safe for any number of threads."""

    def __init__(self, settings: PowerContextSettings) -> None:
        self._settings = settings
        self._step_seconds = min(settings.remember_timeout_seconds, MAX_STEP_SECONDS)

    def correct(
        self,
        binding: Binding,
        citation: object,
        text: object,
        *,
        kind: str | None = None,
        deadline: Deadline | None = None,
    ) -> Outcome:
        """Give the cited memory a new text, if it still says what the citation meant, and return what became of it.

        Args:
            binding: Whose memory.
            citation: What a model wrote for it; anything at all.
            text: The whole new text, by the rules of saving; anything else is refused.
            kind: The new kind, not blank and at most 128 characters (the API's rule); ``None`` keeps the present one.
            deadline: Of the whole call, 27 s without one. Cancelling it lets no further step begin.
        """
        refused = refusal(KINDS[0], text)
        if refused is not None or not isinstance(text, str):
            return NotChanged("empty" if refused is None else refused.reason)
        deadline = deadline or Deadline.after(3 * MAX_STEP_SECONDS)
        return _Correcting(
            shared_client(self._settings),
            binding,
            citation,
            kind,
            normalize(text),
            deadline,
            self._step_seconds,
        ).run()


class _Correcting(Change):
    def __init__(
        self,
        client: PowerContextClient,
        binding: Binding,
        citation: object,
        kind: str | None,
        text: str,
        deadline: Deadline,
        step_seconds: float,
    ) -> None:
        super().__init__(client, binding, citation, deadline, step_seconds)
        self.kind = kind
        self.text = text

    def settle(self, standing: Standing) -> AlreadySo | NotChanged | None:
        if standing.state != "active":
            return _out_of_use(standing)
        if (standing.kind, standing.text) == self._wanted(standing):
            return AlreadySo(standing.text, standing.citation)
        return None

    def write(self, memory: Memory, standing: Standing, deadline: Deadline) -> Changed | NotChanged:
        after = memory.correct(standing, *self._wanted(standing), deadline)
        # It was forgotten between our look and our write: whatever its text is now, nobody gets it.
        return Changed(standing.text, after.citation) if after.state == "active" else _out_of_use(after)

    def confirm(self, before: Standing, after: Standing) -> Changed | NotChanged | None:
        if (after.kind, after.text) != self._wanted(before):
            return None
        if after.state == "active":
            return Changed(before.text, after.citation, by_read_back=True)
        return _out_of_use(after)

    def _wanted(self, before: Standing) -> tuple[str, str]:
        return before.kind if self.kind is None else self.kind, self.text

    def may_yet_happen(self, before: Standing, after: Standing) -> bool:
        return after.citation == before.citation


def _out_of_use(standing: Standing) -> NotChanged:
    return NotChanged(
        "is_forgotten" if standing.state == "forgotten" else "is_set_aside",
        None,
        standing.text,
        standing.citation,
    )
