"""What capture has not sent yet: ``python -m deerflow.agents.memory.backends.powercontext.outbox status|retry|purge``.

Run it with the environment of the Gateway's process (in Docker: inside the Gateway's container). It shows no text,
user, thread or Scope, and makes no request. Exit status 0: done; 1: the outbox cannot be used; 2: it could not run.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .capture.outbox import Outbox
from .capture.outbox_models import Limits, Status
from .doctor.capture_checks import storage_folder
from .doctor.config_file import read_config
from .doctor.environment import enter_checkout
from .errors import PowerContextConfigurationError, PowerContextOutboxError

_UNDELETABLE = "What was sent stays on the PowerContext server, which has no way to delete a source."


def main(arguments: list[str] | None = None) -> int:
    """Do what ``arguments`` say and return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        if options.deerflow is not None:
            enter_checkout(options.deerflow.expanduser().resolve())
        folder = options.storage_path or storage_folder(_config(options.config))
    except (PowerContextConfigurationError, ImportError) as error:
        print(f"The outbox cannot be found: {error}", file=sys.stderr)
        return 2
    outbox = Outbox(folder, Limits(0, 0, float("inf")))  # nothing is put in here, or too old
    if not outbox.exists():
        print(
            f"There is no outbox in {folder}: nothing has been captured yet, or DeerFlow's storage folder is another one (--storage-path).",
        )
        return 0
    try:
        _do(options.command, outbox)
    except PowerContextOutboxError as error:
        print(f"{error}.", file=sys.stderr)
        return 1
    return 0


def _do(command: str, outbox: Outbox) -> None:
    if command == "status":
        print("\n".join(_lines(outbox.status())))
    elif command == "retry":
        print(
            f"{outbox.retry()} refused entries wait again; the Gateway sends them with the next conversation it captures, or when it is restarted.",
        )
    else:
        print(f"{outbox.purge()} entries forgotten. {_UNDELETABLE}")


def _lines(status: Status) -> list[str]:
    lines = [f"waiting: {status.waiting}", f"refused by PowerContext and kept: {sum(status.parked.values())}"]
    lines += [f"  {code}: {count}" for code, count in sorted(status.parked.items())]
    lines += [f"oldest: {status.oldest_seconds:.0f} s", f"size: {status.bytes} bytes", "since the outbox was made:"]
    return [*lines, *(f"  {name}: {count}" for name, count in sorted(status.counts.items())), _UNDELETABLE]


def _config(path: Path | None) -> Mapping[str, Any]:
    """Return DeerFlow's config.yaml; an empty one if none is named and none is here.

    DeerFlow's folder may be named by variables alone.
    """
    found = path or Path(os.environ.get("DEER_FLOW_CONFIG_PATH", "config.yaml"))
    return read_config(found) if path is not None or found.exists() else {}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m deerflow.agents.memory.backends.powercontext.outbox",
        description="See, send again or forget what PowerContext capture has not sent yet. No text, user, thread or Scope is shown.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("status", help="count what waits, what PowerContext refused, and what became of the rest")
    commands.add_parser("retry", help="let what PowerContext refused be sent again")
    commands.add_parser("purge", help="forget everything that has not been sent")
    for command in commands.choices.values():
        command.add_argument(
            "--deerflow",
            type=Path,
            metavar="FOLDER",
            help="a DeerFlow checkout: use its config.yaml and its .env",
        )
        command.add_argument("--config", type=Path, metavar="FILE", help="DeerFlow's config.yaml")
        command.add_argument(
            "--storage-path",
            type=Path,
            metavar="FOLDER",
            help="DeerFlow's storage folder, if neither names it",
        )
    return parser


if __name__ == "__main__":
    sys.exit(main())
