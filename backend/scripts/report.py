"""Writes what the benches measured into docs/BENCHMARKS.md, a section each."""

from __future__ import annotations

import re
from pathlib import Path

REPORT = Path(__file__).resolve().parents[2] / "docs" / "BENCHMARKS.md"


def replace_section(title: str, text: str) -> None:
    """Put ``text`` under the heading ``title``, in the place of what stands there, or at the end."""
    sections = re.split(r"^(?=## )", REPORT.read_text(encoding="utf-8") if REPORT.exists() else "# Benchmarks\n\n", flags=re.MULTILINE)
    section = f"## {title}\n\n{text.strip()}\n\n"
    places = [place for place, old in enumerate(sections) if old.startswith(f"## {title}\n")]
    if places:
        sections[places[0]] = section
    else:
        sections.append(section)
    REPORT.write_text("".join(sections).rstrip() + "\n", encoding="utf-8")
