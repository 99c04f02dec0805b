"""Looking a memory up by its text: is exactly this there?"""

from __future__ import annotations

from ..client import PowerContextClient
from ..deadline import Deadline
from ..errors import PowerContextAuthenticationError, PowerContextCancelledError, PowerContextError, PowerContextScopeNotFoundError
from ..models import Hit
from ..people import Binding
from .outcomes import normalize


def find(client: PowerContextClient, binding: Binding, kind: str, text: str, *, deadline: Deadline) -> Hit | None:
    """Return the active memory with exactly this text and, where the server tells it, this kind; ``None`` if there is none.

    A question that fails is asked once more, within the same limit: that costs nothing, and without an answer a text
    may be stored twice, or a save be left unknown.

    Args:
        client: The process's.
        binding: In whose Scope.
        kind: The memory's.
        text: The memory's, normalized.
        deadline: Of the whole look-up.
    """
    try:
        hits = client.search_memory(binding, text, deadline=deadline)
    except (PowerContextAuthenticationError, PowerContextCancelledError, PowerContextScopeNotFoundError):
        raise
    except PowerContextError:
        hits = client.search_memory(binding, text, deadline=deadline)
    for hit in hits:
        if hit.state == "active" and normalize(hit.text) == text and hit.kind in (None, kind):
            return hit
    return None
