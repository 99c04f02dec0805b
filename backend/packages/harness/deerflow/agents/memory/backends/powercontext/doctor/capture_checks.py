"""What is to be said of capture: the mode, what waits, and whether the server makes memories of it at all."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..api.client import PowerContextClient
from ..deadline import Deadline
from ..diagnostics import Finding, remedy_for
from ..errors import PowerContextError, PowerContextOutboxError
from ..settings.people import Binding
from ..settings.variables import PowerContextSettings
from .config_file import resolved

if TYPE_CHECKING:
    from ..capture.outbox_models import Status

_LONG_SECONDS: Final = 3600.0


def storage_folder(config: Mapping[str, Any]) -> Path:
    """Return the folder that DeerFlow passes to its memory as ``storage_path``, found by DeerFlow's own rules.

    Args:
        config: DeerFlow's config.yaml. Without a folder there, it is DeerFlow's state directory.
    """
    root = Path(os.environ.get("DEER_FLOW_PROJECT_ROOT") or Path.cwd())
    home = Path(os.environ.get("DEER_FLOW_HOME") or root / ".deer-flow").resolve()
    memory = config.get("memory")
    backend_config = memory.get("backend_config") if isinstance(memory, Mapping) else None
    named = resolved(backend_config.get("storage_path")) if isinstance(backend_config, Mapping) else None
    return (home / str(named)).resolve() if named else home


def check_capture(settings: PowerContextSettings, config: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the mode, and what is in the outbox."""
    if settings.capture == "off":
        yield Finding("ok", "capture", "off: conversations stay in DeerFlow")
        return
    what = "what people with a binding write" + (", and the final answers" if settings.capture == "turns" else "")
    yield Finding(
        "ok",
        "capture",
        f"{settings.capture}: {what}, is sent to be learned from; PowerContext cannot delete what it was sent",
    )
    from ..capture.outbox import Outbox
    from ..capture.outbox_models import Limits

    outbox = Outbox(
        storage_folder(config),
        Limits(settings.capture_max_entries, settings.capture_max_bytes, settings.capture_max_days * 86400.0),
    )
    if not outbox.exists():
        yield Finding(
            "ok",
            "outbox",
            "nothing has been captured yet, or DeerFlow's storage folder is another one in this environment",
        )
        return
    try:
        status = outbox.status()
    except PowerContextOutboxError as error:
        yield Finding("failed", "outbox", str(error))
        return
    yield _what_waits(status)


def _what_waits(status: Status) -> Finding:
    parked = sum(status.parked.values())
    facts = f"{status.waiting} waiting, {parked} refused by PowerContext and kept, the oldest for {status.oldest_seconds / 60:.0f} min"
    if parked:
        facts += f" ({', '.join(sorted(status.parked))}: look into the server's log, then `outbox retry` or `outbox purge`)"
    elif status.oldest_seconds > _LONG_SECONDS:
        facts += ": see whether the Gateway runs, and the server lines here"
    return Finding("warning" if parked or status.oldest_seconds > _LONG_SECONDS else "ok", "outbox", facts)


def check_extraction(client: PowerContextClient, binding: Binding, seconds: float) -> Iterator[Finding]:
    """Yield whether the server makes memories of what it is sent, each question within ``seconds``."""
    try:
        capabilities = client.get_capabilities(binding, deadline=Deadline.after(seconds))
        stats = client.get_stats(binding, deadline=Deadline.after(seconds))
    except PowerContextError as error:
        yield Finding("warning", "extraction", f"not known: {remedy_for(error)}")
        return
    progress = f"{stats.sources_processed} sources looked through, {stats.sources_pending} not yet"
    if not capabilities.memory_extraction:
        remedy = "this server has no generation model, so nothing that is captured becomes a memory: set POWERCONTEXT_SERVER_INFERENCE_GENERATION_MODEL there"
        yield Finding("warning", "extraction", f"{remedy} ({progress})")
    elif capabilities.extraction is not None and not capabilities.extraction.background.automatic_processing_enabled:
        remedy = "this server looks for memories only when it is asked to: set POWERCONTEXT_SERVER_RUNTIME_SCHEDULE_SECONDS there"
        yield Finding("warning", "extraction", f"{remedy} ({progress})")
    else:
        yield Finding("ok", "extraction", progress)
