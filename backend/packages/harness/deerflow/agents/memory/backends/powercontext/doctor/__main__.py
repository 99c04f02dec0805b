"""The command: ``python -m deerflow.agents.memory.backends.powercontext.doctor``.

Run it with the environment of the Gateway's process (in Docker: inside the Gateway's container), or name a checkout.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

from ..diagnostics import Finding
from ..errors import PowerContextConfigurationError
from ..settings.loading import VARIABLES
from .capture_checks import check_capture
from .config_file import CONFIG_VARIABLE, read_config, repeated_sections
from .environment import EnvironmentFileError, enter_checkout
from .host_checks import best_mode, check_config, check_host, mode_of
from .server_checks import check_environment, check_service
from .user_table import check_users

_ENDS = """\
exit status:
  0  nothing failed
  1  something failed: the first failed line is what to correct first
  2  the doctor could not run
(make itself ends with 2 in both cases; the last line tells which.)

variables: """


def diagnose(config: Mapping[str, Any], config_folder: Path) -> Iterator[Finding]:
    """Yield all findings, in the order in which they are best corrected.

    ``config_folder`` is where ``config`` is from.
    """
    settings, findings = check_environment()
    yield from findings
    yield from check_config(config, settings.tools if settings else ())
    yield from check_host(mode_of(config))
    if settings is None:
        yield Finding("warning", "server", "not asked: the settings come first")
        return
    if settings.capture != "off" and mode_of(config) == "tool":
        other = ", or memory.mode: middleware" if best_mode() == "middleware" else ""
        remedy = f"set POWERCONTEXT_DEERFLOW_CAPTURE=off{other}"
        yield Finding(
            "warning",
            "capture",
            f"in mode tool DeerFlow hands over no conversation, so nothing is captured; {remedy}",
        )
    else:
        yield from check_capture(settings, config)
    yield from check_users(config, config_folder, settings)
    yield from check_service(settings)


def summary(findings: Sequence[Finding]) -> str:
    """Return the last line, which says it all."""
    failed, warned = (sum(finding.status == status for finding in findings) for status in ("failed", "warning"))
    if failed:
        return f"{failed} problem{'s' if failed > 1 else ''}. {'Start with the first, then' if failed > 1 else 'Correct it, then'} restart the Gateway."
    return f"No problem{f', {warned} warning' + ('s' if warned > 1 else '') if warned else ''}."


def main(arguments: list[str] | None = None) -> int:
    """Print the diagnosis and return the exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a remedy may have signs that the terminal has not
    try:
        return _run(_parser().parse_args(arguments))
    except (PowerContextConfigurationError, ImportError) as error:
        print(f"The doctor cannot run: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # who reads has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _run(options: argparse.Namespace) -> int:
    place = Path("config.yaml")
    try:
        if options.deerflow is not None:
            files, place = enter_checkout(options.deerflow.expanduser().resolve())
            print("Files: " + (", ".join(files) or "none"), file=sys.stderr)
    except EnvironmentFileError as error:
        return _tell(
            [Finding("failed", ".env", str(error)), Finding("warning", "settings", "not read: .env comes first")],
            as_json=options.json,
        )
    named = None if options.config else os.environ.get(CONFIG_VARIABLE)
    path = options.config or Path(named or place)
    config = read_config(path, by_variable=bool(named))
    repeated = (Finding("failed", "config", fault) for fault in repeated_sections(path))
    return _tell(chain(repeated, diagnose(config, path.absolute().parent)), as_json=options.json)


def _tell(diagnosis: Iterable[Finding], *, as_json: bool) -> int:
    findings: list[Finding] = []
    for finding in diagnosis:
        findings.append(finding)
        if not as_json:
            print(finding, flush=True)
    print(json.dumps([asdict(finding) for finding in findings], indent=2) if as_json else summary(findings), flush=True)
    return 1 if any(finding.status == "failed" for finding in findings) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m deerflow.agents.memory.backends.powercontext.doctor",
        description="Diagnose PowerContext memory, in the environment of DeerFlow's Gateway. Nothing is changed; no token, user, Scope or memory is shown.",
        epilog=_ENDS + ", ".join(VARIABLES),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--deerflow",
        type=Path,
        metavar="FOLDER",
        help="a DeerFlow checkout: use its config.yaml and its .env, as its own start does",
    )
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="DeerFlow's config.yaml (default: DEER_FLOW_CONFIG_PATH, else config.yaml in this folder)",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print the findings as a JSON list of {status, what, detail}, and nothing else on standard output",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
