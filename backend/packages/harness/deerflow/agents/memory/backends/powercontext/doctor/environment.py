"""A DeerFlow checkout's own files and variables: what its start reads before the Gateway runs."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Final

from ..errors import PowerContextConfigurationError

# What runs in bash, as in DeerFlow's start: every assignment of the file is exported, and the first line that fails ends it.
_SOURCE: Final = 'set -ea; . "$0" >/dev/null; set +x; env -0'
_SECONDS: Final = 10
_MARKS: Final = {b"\xef\xbb\xbf": "\\xEF\\xBB\\xBF", b"\xff\xfe": "", b"\xfe\xff": ""}


def enter_checkout(checkout: Path) -> list[str]:
    """Take over the variables of ``checkout``'s ``.env``, as its own start does, and return the files that count.

    Raises:
        PowerContextConfigurationError: It is no DeerFlow checkout, or its ``.env`` cannot be read.
    """
    if not (checkout / "backend" / "packages" / "harness").is_dir():
        raise PowerContextConfigurationError(f"{checkout} is not the top folder of a DeerFlow checkout; name that with --deerflow (make doctor: DEERFLOW=)")
    config = checkout / "config.yaml"
    if not config.exists() and (checkout / "backend" / "config.yaml").exists():  # where DeerFlow looks, too
        config = checkout / "backend" / "config.yaml"
    file = checkout / ".env"
    if file.exists():
        _check(file)
        os.environ.update(_variables_of(file))
    config = Path(os.environ.get("DEER_FLOW_CONFIG_PATH") or config)
    os.environ["DEER_FLOW_CONFIG_PATH"] = str(config)
    return [str(path) for path in (file, checkout / "backend" / ".env", config) if path.exists()]


def _check(file: Path) -> None:
    """Refuse a file whose bytes a shell takes for something else than the editor that wrote it."""
    try:
        content = file.read_bytes()
    except OSError:
        raise PowerContextConfigurationError(f"{file} is not a file that this user can read") from None
    for mark, pattern in _MARKS.items():
        if content.startswith(mark):
            remedy = f"run: perl -pi -e 's/^{pattern}// if $. == 1' {_quoted(file)}" if pattern else "save it as UTF-8"
            raise PowerContextConfigurationError(f"{file} begins with a byte order mark, so DeerFlow's start stops at line 1; {remedy}")
    if b"\r\n" in content:
        raise PowerContextConfigurationError(f"{file} has the line ends of Windows, so every value has a sign too many; run: perl -pi -e 's/\\r$//' {_quoted(file)}")


def _variables_of(file: Path) -> dict[str, str]:
    """Return the environment after ``file`` was read by a shell."""
    command = ["bash", "-c", _SOURCE, str(file)]
    try:
        environment = os.environ | {"LC_ALL": "C"}
        done = subprocess.run(command, capture_output=True, check=False, timeout=_SECONDS, stdin=subprocess.DEVNULL, env=environment)  # noqa: S603 - what DeerFlow's own start runs
    except (OSError, subprocess.TimeoutExpired):
        raise PowerContextConfigurationError(f"{file} cannot be read as bash reads it at DeerFlow's start: bash is missing, or does not end within {_SECONDS} s") from None
    if done.returncode == 0:
        pairs = [pair.partition("=") for pair in os.fsdecode(done.stdout).split("\0") if "=" in pair]
        return {name: value for name, _, value in pairs if name != "LC_ALL"}
    raise PowerContextConfigurationError(f"{file} ends DeerFlow's start{_place(os.fsdecode(done.stderr))}: it takes NAME=value, without spaces around the sign =, and with quotes around a value that has spaces or other signs of the shell")


def _place(complaints: str) -> str:
    """Return where bash stopped. What it says besides may quote the file."""
    lines = re.findall(r"^.*?: line (\d+): ", complaints, re.MULTILINE)
    return f" at line {lines[0]}" if lines else ""


def _quoted(file: Path) -> str:
    return shlex.quote(str(file))
