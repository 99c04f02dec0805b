"""Numbers as tables, the machine they were measured on, and the sections of ``docs/BENCHMARKS.md`` they go into."""

from __future__ import annotations

import math
import os
import platform
import re
import statistics
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[3] / "docs" / "BENCHMARKS.md"

_HEAD = "# Measurements\n\nEach section was written by a script, which it names; run that to measure again.\n"
_LIBRARIES = ("httpx", "httpcore", "h11", "pydantic", "powercontext")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table, aligned for the eye too; all columns but the first are numbers, on the right."""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        numbers = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
        return f"| {' | '.join([cells[0].ljust(widths[0]), *numbers])} |"

    rule = [("-" * (width - 1) + ":") if column else "-" * width for column, width in enumerate(widths)]
    return "\n".join([line(head), line(rule), *map(line, rows)])


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest of ``values`` that at least ``share`` of them do not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def spread(values: list[float]) -> str:
    """Return the median of ``values``, and between which two the middle 80 % are."""
    digits = 0 if max(values) >= 100 else 2
    low, high = percentile(values, 0.1), percentile(values, 0.9)
    return f"{statistics.median(values):.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


def machine() -> str:
    """Return one sentence on what was measured, where and when."""
    model = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    versions = ", ".join(f"{name} {_version(name)}" for name in _LIBRARIES)
    processor = model[1] if model else platform.machine()
    day = time.strftime("%Y-%m-%d", time.gmtime())
    load = f"load {os.getloadavg()[0]:.1f} at the end"
    return f"{day}, {os.cpu_count()} cores ({processor}), {load}, Python {platform.python_version()}, {versions}."


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "not installed"


def replace_section(title: str, body: str, path: Path = BENCHMARKS) -> None:
    """Make ``body`` the section ``## title`` of ``path``, in its place or at the end; every other section stays as it is.

    Args:
        title: The heading without its ``##``.
        body: Markdown in which no line starts with ``##`` and a space.
        path: Made if it is not there.
    """
    text = path.read_text(encoding="utf-8") if path.exists() else _HEAD
    section = f"## {title}\n\n{body.strip()}\n"
    parts = re.split(r"(?m)^(?=## )", text)
    positions = [position for position, part in enumerate(parts) if part.splitlines()[:1] == [f"## {title}"]]
    if positions:
        last = positions[0] == len(parts) - 1
        parts[positions[0]] = section if last else section + "\n"
    else:
        parts[-1] = parts[-1].rstrip("\n") + "\n\n"
        parts.append(section)
    path.write_text("".join(parts), encoding="utf-8")
