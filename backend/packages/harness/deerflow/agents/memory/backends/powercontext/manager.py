"""DeerFlow's memory contract on PowerContext: recall, and capture only where the operator wants it."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import ConfigDict, PrivateAttr

from .check_people import MAX_ASKED_AT_START, check_everybody
from .deadline import Deadline
from .diagnostics import describe, settings_warnings, sign_in_problem
from .errors import PowerContextConfigurationError
from .host import NO_QUERY, MemoryManager, ReadError, host_forwards_query
from .recall.log import RecallLog
from .sanitizing import without_host_tags
from .settings.loading import PowerContextSettings, load_settings
from .settings.people import is_usable_user_id
from .settings.yaml_config import ReadPolicy, parse_backend_config, reads_are_fatal
from .wrong_settings import UnconfiguredMemoryManager

if TYPE_CHECKING:
    from collections.abc import Callable

    from .api.client import PowerContextClient
    from .capture.intake import Capture
    from .recall.circuit_breaker import CircuitBreaker
    from .recall.recalling import Recall

logger = logging.getLogger(__name__)


class PowerContextMemoryManager(MemoryManager):
    """Recalls what the configured user's Scope holds (RFC section 4).

    Saving is the ``remember`` tool's work. ``add``, ``aadd`` and ``add_nowait`` do nothing, unless the operator
    switched capture on (RFC section 7); then they queue what is new, and neither raise nor wait for the server.
    Management methods keep the contract's ``NotImplementedError``; DeerFlow's memory page answers 501. Safe for any
    number of threads.

    Raises:
        PowerContextConfigurationError: The environment or ``backend_config`` is wrong; nothing is contacted.
    """

    model_config = ConfigDict(hide_input_in_errors=True)

    # DeerFlow is about to ask managers for this before it forwards a request; hosts before it do not look.
    supports_query_aware_context: ClassVar[bool] = True

    _settings: PowerContextSettings = PrivateAttr()
    _read_policy: ReadPolicy = PrivateAttr()
    _client: PowerContextClient = PrivateAttr()
    _recall: Recall = PrivateAttr()
    _breaker: CircuitBreaker = PrivateAttr()
    _recall_log: RecallLog = PrivateAttr()
    _capture: Capture | None = PrivateAttr(default=None)

    @classmethod
    def from_config(
        cls,
        backend_config: dict[str, Any] | None,
        *,
        mode: Literal["middleware", "tool"] = "middleware",
        should_keep_hidden_message: Callable[[Any], bool] | None = None,
        **_host_hooks: Any,
    ) -> PowerContextMemoryManager | UnconfiguredMemoryManager:
        """Build the manager from the environment's settings, without a request to the server.

        The host's other hooks are for backends that extract memories. Where the settings are wrong, a manager comes
        back that has no memory for anybody and has logged why: an error from here would end every run of every user.
        """
        try:
            parse_backend_config(backend_config)  # before pydantic, whose errors would quote it
            manager = cls(backend_config=backend_config or {}, mode=mode)
            if manager._capture is not None and should_keep_hidden_message is not None:
                manager._capture.keep_hidden = should_keep_hidden_message
            return manager
        except PowerContextConfigurationError as error:
            return UnconfiguredMemoryManager.because_of(error, reads_are_fatal=reads_are_fatal(backend_config))

    @classmethod
    def read_failures_are_fatal_for_config(cls, backend_config: dict[str, Any] | None) -> bool:
        """Tell whether a failed recall stops the run, from ``backend_config`` alone."""
        return reads_are_fatal(backend_config)

    def model_post_init(self, context: Any, /) -> None:
        """Wire the manager, for the factory and for direct construction alike."""
        # DeerFlow imports every backend at start-up; httpcore and the patterns of a query load only for the chosen one.
        from .process import shared_client
        from .recall.circuit_breaker import circuit_breaker_of
        from .recall.recalling import Recall

        self._read_policy = parse_backend_config(self.backend_config)
        self._settings = load_settings()
        self._recall_log = RecallLog(self._read_policy, self._settings.named_in)
        self._client = shared_client(self._settings)
        self._recall = Recall(self._client)
        self._breaker = circuit_breaker_of(self._client)
        for warning in settings_warnings(self._settings):
            logger.warning("%s.", warning)
        if self._settings.capture != "off":
            from .capture.intake import start_capture

            self._capture = start_capture(self._settings, self._client, self.backend_config)

    def get_context(
        self,
        user_id: str | None,
        *,
        agent_name: str | None = None,
        thread_id: str | None = None,
        query: str | None = None,
    ) -> str:
        """Return what the owner's Scope holds for ``query``: bounded text with citations, or ``""``.

        Args:
            user_id: Anyone but the configured owner gets ``""``, and no request is made.
            agent_name: Selects nothing; all of the owner's agents share the Scope.
            thread_id: Selects nothing.
            query: The user's request. ``""`` without one.

        Raises:
            MemoryReadError: The recall failed and ``failure_policy.read`` is ``fail_closed`` (``MemoryManagerError``
                before September 2026). With ``fail_open`` a failure is ``""``.
        """
        binding = self._settings.people.binding_of(user_id)
        if is_usable_user_id(user_id):
            self._recall_log.asked_by(bound=binding is not None)
        if binding is None:
            logger.debug("PowerContext recall: the caller has no binding and gets nothing.")
            return ""
        self._recall_log.query_seen(query)
        if not isinstance(query, str) or self._client.closed:
            return ""
        started = time.monotonic()
        try:
            if not query.strip():  # here, because a subclass of str may do anything
                return ""
            recall = self._client.prepare_context if self._settings.recall_query == "full" else self._recall.recall
            with self._breaker.attempt():
                context = recall(binding, query, deadline=Deadline.after(self._settings.recall_timeout_seconds))
        except Exception as error:  # noqa: BLE001 - the host's boundary: whatever went wrong, the policy decides
            if self._client.closed:
                return ""
            self._recall_log.failed(error, time.monotonic() - started, binding)
            failure = type(error).__name__
        else:
            self._recall_log.succeeded(len(context.encode()), time.monotonic() - started, binding)
            return without_host_tags(context)
        if self._read_policy == "fail_open":
            return ""
        raise ReadError(f"PowerContext recall failed: {failure}")

    async def aget_context(
        self,
        user_id: str | None,
        *,
        agent_name: str | None = None,
        thread_id: str | None = None,
        query: str | None = None,
    ) -> str:
        """Do the same as ``get_context`` without blocking the event loop."""
        from asyncio import to_thread  # asyncio costs 12 ms to import, and who calls this has it

        return await to_thread(self.get_context, user_id, agent_name=agent_name, thread_id=thread_id, query=query)

    def add(
        self,
        thread_id: str,
        messages: list[Any],
        *,
        agent_name: str | None = None,
        user_id: str | None = None,
        trace_id: str | None = None,
    ) -> None:
        """Capture what is new in a conversation, if capture is on; otherwise do nothing (RFC section 2)."""
        if self._capture is not None:
            self._capture.wait(self._capture.hear(user_id, thread_id, messages))

    def add_nowait(
        self,
        thread_id: str,
        messages: list[Any],
        *,
        agent_name: str | None = None,
        user_id: str | None = None,
    ) -> None:
        """Capture what compaction is about to remove, if capture is on. Waits for nothing."""
        if self._capture is not None:
            self._capture.hear(user_id, thread_id, messages, compaction=True)

    async def aadd(
        self,
        thread_id: str,
        messages: list[Any],
        *,
        agent_name: str | None = None,
        user_id: str | None = None,
        trace_id: str | None = None,
    ) -> None:
        """Do the same as ``add`` without blocking the event loop."""
        if self._capture is not None:
            await self._capture.settled(self._capture.hear(user_id, thread_id, messages))

    def warm(self) -> None:
        """Log whether the server is ready for this configuration, within ``recall_timeout_seconds``.

        Returns ``None`` always: the host takes ``True`` and ``False`` for news of its tokenizer.
        """
        if self._client.closed:
            return
        if self._capture is not None:
            self._capture.resume()
        started = time.monotonic()
        limit = self._settings.recall_timeout_seconds
        bindings = self._settings.people.bindings[:MAX_ASKED_AT_START]
        try:
            findings, _ = check_everybody(self._client, bindings, Deadline.after(limit), each_seconds=limit)
            problems = [finding.detail.rstrip(".") for finding in findings if finding.status == "failed"]
            if problem := sign_in_problem():
                problems.append(problem)
            if self.mode != "tool" and not host_forwards_query():
                problems.append(NO_QUERY)
        except Exception as error:  # noqa: BLE001 - the host's boundary
            problems = [describe(error, time.monotonic() - started)]
        if problems:
            logger.warning("PowerContext memory will not work yet: %s.", problems[0])
        else:
            logger.info("PowerContext memory is ready (%.0f ms).", (time.monotonic() - started) * 1000)

    def shutdown_flush(self, timeout: float) -> bool:
        """Send what was captured, within ``timeout`` seconds, and return whether nothing is left.

        What is left stays in the outbox. Without capture nothing is ever buffered.
        """
        return True if self._capture is None else self._capture.flush(timeout)

    def close(self) -> None:
        """Close the connections. Calls under way end with their step, later recalls return ``""``. Idempotent."""
        from .tools.tool_calls import cancel_calls

        if self._capture is not None:
            self._capture.close()
        self._client.close()
        cancel_calls()
