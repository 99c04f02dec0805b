"""The command: ``python -m deerflow.agents.memory.backends.powercontext.doctor``.

Run it with the environment of the Gateway's process (in Docker: inside the Gateway's container). Exit code 0: nothing
failed; 1: something failed; 2: it could not run.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..diagnostics import Finding
from ..errors import PowerContextConfigurationError
from .host_checks import check_config, check_host, read_config
from .server_checks import check_environment, check_service


def diagnose(config: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield all findings, in the order in which they are best mended."""
    settings, findings = check_environment()
    yield from findings
    yield from check_config(config)
    yield from check_host()
    if settings is None:
        yield Finding("warning", "server", "not asked: the settings come first")
        return
    yield from check_service(settings)


def main(arguments: list[str] | None = None) -> int:
    """Print the diagnosis and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m deerflow.agents.memory.backends.powercontext.doctor", description="Diagnose PowerContext memory, in the environment of DeerFlow's Gateway. Nothing is changed; no token, user, Scope or memory is shown."
    )
    parser.add_argument("--config", type=Path, default=Path(os.environ.get("DEER_FLOW_CONFIG_PATH", "config.yaml")), help="DeerFlow's config.yaml")
    parser.add_argument("--json", action="store_true", help="print the findings as a JSON list")
    options = parser.parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a remedy may have signs that the terminal has not
    try:
        config = read_config(options.config)
    except (PowerContextConfigurationError, ImportError) as error:
        print(f"The doctor cannot run: {error}", file=sys.stderr)
        return 2
    findings = []
    for finding in diagnose(config):
        findings.append(finding)
        if not options.json:
            print(finding, flush=True)
    if options.json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    return 1 if any(finding.status == "failed" for finding in findings) else 0


if __name__ == "__main__":
    sys.exit(main())
