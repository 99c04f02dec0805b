"""A DeerFlow checkout's own files and variables: what its start reads before the Gateway runs."""

from __future__ import annotations

import os
import re
import shlex
import signal
import stat
import subprocess
from pathlib import Path
from typing import Final

from ..errors import PowerContextConfigurationError
from .config_file import CONFIG_VARIABLE

# What runs in bash, as in DeerFlow's start: every assignment of the file is exported, and the first line that fails
# ends it. The trace tells at which line; it has values in it, and nothing of it but the number is used.
_SOURCE: Final = "PS4='+$BASH_SOURCE $LINENO: '; set -eax; . \"$0\" >/dev/null; set +x; env -0"
_OURS: Final = ("LC_ALL", "PS4")
_SECONDS: Final = 10
# What perl is to change.
_MARK: Final = r"s/^\xEF\xBB\xBF// if $. == 1"
_ZEROS: Final = r"s/\0//g"
_LINE_ENDS: Final = r"s/\r$//"


class EnvironmentFileError(PowerContextConfigurationError):
    """The checkout's ``.env`` is not what DeerFlow's start can read. Says why, and what to do; quotes nothing of it."""


def enter_checkout(checkout: Path) -> tuple[list[str], Path]:
    """Take over the variables of ``checkout``'s ``.env``, as its own start does.

    Returns:
        The files that count, and the config.yaml that DeerFlow finds there if no variable names another.

    Raises:
        PowerContextConfigurationError: It is no DeerFlow checkout, or there is no bash.
        EnvironmentFileError: Its ``.env`` cannot be read as DeerFlow's start reads it.
    """
    if not (checkout / "backend" / "packages" / "harness").is_dir():
        raise PowerContextConfigurationError(
            f"{checkout} is not the top folder of a DeerFlow checkout; name that with --deerflow (make doctor: DEERFLOW=)",
        )
    config = checkout / "config.yaml"
    if not config.exists() and (checkout / "backend" / "config.yaml").exists():  # where DeerFlow looks, too
        config = checkout / "backend" / "config.yaml"
    file = checkout / ".env"
    if os.path.lexists(file):
        _check(file)
        os.environ.update(_variables_of(file))
    named = Path(os.environ.get(CONFIG_VARIABLE) or config)
    return [str(path) for path in (file, checkout / "backend" / ".env", named) if path.exists()], config


def _check(file: Path) -> None:
    """Refuse what is no file, and a file whose bytes a shell takes for something else than the editor that wrote it."""
    if kind := _kind(file):
        aside = f"run: mv {_quoted(file)} {_quoted(_unused(file))}"
        raise EnvironmentFileError(
            f"{file} is {kind}, so DeerFlow's start reads no variables from it; put it aside and write a file; {aside}",
        )
    try:
        content = file.read_bytes()
    except OSError:
        remedy = f"run: chmod u+r {_quoted(file)}" if file.stat().st_uid == os.getuid() else "DeerFlow and the doctor have to run as the user who owns it"
        raise EnvironmentFileError(
            f"{file} cannot be read by this user, so DeerFlow's start stops there; {remedy}",
        ) from None
    _check_content(file, content)


def _check_content(file: Path, content: bytes) -> None:
    if content.startswith(b"\xef\xbb\xbf"):
        raise EnvironmentFileError(
            f"{file} begins with a byte order mark, so DeerFlow's start stops at line 1; {_perl(_MARK, file)}",
        )
    if encoding := _wide_encoding(content):
        raise EnvironmentFileError(
            f"{file} is written in {encoding}, which bash cannot read, so DeerFlow's start stops at line 1; {_iconv(encoding, file)}",
        )
    if b"\0" in content:
        raise EnvironmentFileError(
            f"{file} has bytes in it that are zero, which no value can have; {_perl(_ZEROS, file)}",
        )
    if not _is_utf_8(content):
        raise EnvironmentFileError(
            f"{file} is not UTF-8, so DeerFlow does not start; if it is in the Latin-1 of an old editor, {_iconv('ISO-8859-1', file)}",
        )
    if b"\r\n" in content:
        raise EnvironmentFileError(
            f"{file} has the line ends of Windows, so every value has a sign too many; {_perl(_LINE_ENDS, file)}",
        )


def _kind(file: Path) -> str | None:
    """Return what is there instead of a file, or ``None``. DeerFlow's start passes over it."""
    if not file.exists():
        return "a link that leads nowhere"
    if file.is_dir():
        return "a folder"
    return None if stat.S_ISREG(file.stat().st_mode) else "no regular file"


def _unused(file: Path) -> Path:
    names = (f"{file.name}.aside{number or ''}" for number in range(1000))
    return next(path for name in names if not os.path.lexists(path := file.with_name(name)))


def _wide_encoding(content: bytes) -> str | None:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16"
    return {b"\0": "UTF-16BE"}.get(content[:1]) or {b"\0": "UTF-16LE"}.get(content[1:2])


def _variables_of(file: Path) -> dict[str, str]:
    """Return the environment after ``file`` was read by a shell."""
    try:
        status, output, complaints = _read_by_bash(file)
    except OSError:
        raise PowerContextConfigurationError(
            f"{file} cannot be read as bash reads it at DeerFlow's start: bash is missing",
        ) from None
    if status == 0:
        pairs = [pair.partition("=") for pair in output.split("\0") if "=" in pair]
        return {name: value for name, _, value in pairs if name not in _OURS}
    line = _line(file, complaints)
    place = f" at line {line}" if line else ""
    if status is None:
        remedy = f"take it out{'; ' + _perl(f's/^/# / if $. == {line}', file) if line else ''}"
        raise EnvironmentFileError(
            f"{file} runs a command{place} that does not end within {_SECONDS} s, and DeerFlow's start waits for it; {remedy}",
        )
    raise EnvironmentFileError(
        f"{file} ends DeerFlow's start{place}: it takes NAME=value, without spaces around the sign =, and with quotes around a value that has spaces or other signs of the shell",
    )


def _read_by_bash(file: Path) -> tuple[int | None, str, str]:
    """Return how bash ended, ``None`` if it did not, and what it wrote. What the file began does not outlive this."""
    command = ["bash", "-c", _SOURCE, str(file)]
    environment = os.environ | {"LC_ALL": "C"}
    bash = subprocess.Popen(  # noqa: S603 - what DeerFlow's own start runs
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    with bash:  # closes the pipes
        status = None
        try:
            output, complaints = bash.communicate(timeout=_SECONDS)
            status = bash.returncode
        except subprocess.TimeoutExpired as ended:
            output, complaints = b"", ended.stderr or b""
        finally:
            if status is None:
                os.killpg(bash.pid, signal.SIGKILL)
    return status, os.fsdecode(output), os.fsdecode(complaints)


def _line(file: Path, complaints: str) -> str:
    """Return at which line of ``file`` bash stopped.

    It is that of its last words or that of the trace, whichever it came to later.

    What there is besides may quote the file.
    """
    name = re.escape(str(file))
    said = re.findall(rf"^{name}: (?:command substitution: )?line (\d+): ", complaints, re.MULTILINE)
    traced = re.findall(rf"^\++{name} (\d+): ", complaints, re.MULTILINE)
    return str(max(map(int, [*said[-1:], *traced[-1:]]), default=""))


def _is_utf_8(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _iconv(encoding: str, file: Path) -> str:
    """Return a command that writes into the file that is there, which keeps its mode: the file has a token in it."""
    return f"run: text=$(iconv -f {encoding} -t UTF-8 {_quoted(file)}) && printf '%s\\n' \"$text\" > {_quoted(file)}"


def _perl(change: str, file: Path) -> str:
    return f"run: perl -pi -e '{change}' {_quoted(file)}"


def _quoted(file: Path) -> str:
    return shlex.quote(str(file))
