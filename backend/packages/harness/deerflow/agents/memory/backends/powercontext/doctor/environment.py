"""A DeerFlow checkout's own files and variables: what its start reads before the Gateway runs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from ..errors import PowerContextConfigurationError

# What runs in bash, as in DeerFlow's start: every assignment of the file is exported.
_SOURCE = 'set -a; . "$0" >/dev/null 2>&1; env -0'
_SECONDS = 10


def enter_checkout(checkout: Path) -> list[str]:
    """Take over the variables of ``checkout``'s ``.env``, as its own start does, and return the files that count.

    Raises:
        PowerContextConfigurationError: It is no DeerFlow checkout, or its ``.env`` cannot be read.
    """
    if not (checkout / "backend" / "packages" / "harness").is_dir():
        raise PowerContextConfigurationError(f"{checkout} is not the top folder of a DeerFlow checkout; name that with --deerflow")
    config = checkout / "config.yaml"
    file = checkout / ".env"
    if file.exists():
        os.environ.update(_variables_of(file))
    config = Path(os.environ.get("DEER_FLOW_CONFIG_PATH", config))
    os.environ["DEER_FLOW_CONFIG_PATH"] = str(config)
    return [str(path) for path in (file, config) if path.exists()]


def _variables_of(file: Path) -> dict[str, str]:
    """Return the environment after ``file`` was read by a shell."""
    try:
        command = ["bash", "-c", _SOURCE, str(file)]
        done = subprocess.run(command, capture_output=True, check=False, timeout=_SECONDS, stdin=subprocess.DEVNULL)  # noqa: S603 - what DeerFlow's own start runs
        pairs = [pair.partition("=") for pair in os.fsdecode(done.stdout).split("\0") if "=" in pair]
        if pairs and os.access(file, os.R_OK):
            return {name: value for name, _, value in pairs}
    except (OSError, subprocess.TimeoutExpired):
        pass
    raise PowerContextConfigurationError(f"{file} cannot be read as bash reads it at DeerFlow's start; try: bash -c 'set -a; . {file}'")
