"""Runs the backend's tests inside a real DeerFlow checkout, with what they need beside it. ``make test-host`` runs it.

The host's environment is left alone. Packages of the tests that it lacks, and only those, come into a folder of ours,
behind everything else on the path, so that nothing of the host's is replaced.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SERVER = ROOT / ".venv" / "bin" / "powercontext"
OLD_SERVER = ROOT / ".venv-1.2.0" / "bin" / "powercontext"

# What the tests import beside the backend's own needs, by distribution. The versions are those of requirements-dev.txt.
NEEDED = {
    "pytest": "pytest",
    "pytest-httpserver": "pytest_httpserver",
    "trustme": "trustme",
    "hypothesis": "hypothesis",
    "blockbuster": "blockbuster",
    "PyYAML": "yaml",
}

LOOK = """
import importlib.metadata, importlib.util, json, sys
lacks = [name for name in sys.argv[1:] if importlib.util.find_spec(name) is None]
import deerflow.agents.memory.backends as backends
try:
    api = importlib.metadata.version("deerflow-extension-api")
except importlib.metadata.PackageNotFoundError:
    api = "unknown"
print(json.dumps({"lacks": lacks, "version": sys.version.split()[0], "tag": sys.implementation.cache_tag, "backends": backends.__file__, "api": api}))
"""

# The folder goes behind what the interpreter has. "" is where `python -m pytest` would start, the checkout's backend.
RUN = "import runpy, sys; sys.path.append(sys.argv.pop(1)); runpy.run_module('pytest', run_name='__main__', alter_sys=True)"


class InputError(Exception):
    """What was given cannot be used; the message says why and what to do."""


def environment_of(checkout: Path) -> dict[str, str]:
    """Return the environment in which ``checkout``, and no other installed DeerFlow, is what an import finds."""
    packages = [str(checkout / "backend" / "packages" / name) for name in ("harness", "extension-api")]
    path = os.pathsep.join([*packages, *filter(None, [os.environ.get("PYTHONPATH")])])
    servers = {"POWERCONTEXT_TEST_SERVER": SERVER, "POWERCONTEXT_TEST_SERVER_1_2_0": OLD_SERVER}
    named = {name: os.environ.get(name, str(command)) for name, command in servers.items()}
    return os.environ | named | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def look(python: Path, checkout: Path) -> dict[str, str | list[str]]:
    """Return what the host's interpreter is, and which modules of ``NEEDED`` it lacks."""
    command = [str(python), "-c", LOOK, *NEEDED.values()]
    try:
        done = subprocess.run(command, cwd=checkout / "backend", env=environment_of(checkout), capture_output=True, text=True, check=False)
    except OSError as error:
        raise InputError(f"{python} cannot be run ({error.strerror}). Run DeerFlow's own `make install`, or name the Python it runs with: HOST_PYTHON=") from None
    if done.returncode:
        last = done.stderr.strip().rpartition("\n")[2]
        raise InputError(f"{python} cannot import this DeerFlow ({last}). Name the Python it runs with: HOST_PYTHON=")
    found: dict[str, str | list[str]] = json.loads(done.stdout)
    if not Path(str(found["backends"])).is_relative_to(checkout):
        raise InputError(f"{python} finds another DeerFlow than {checkout}: {found['backends']}.")
    return found


def bring(python: Path, tag: str, lacks: list[str]) -> Path:
    """Install what the host lacks into a folder of ours, and return it."""
    pins = re.findall(r"^([A-Za-z-]+)==(\S+)$", (ROOT / "requirements-dev.txt").read_text(encoding="utf-8"), re.MULTILINE)
    wanted = [f"{name}=={version}" for name, version in pins if NEEDED.get(name) in lacks]
    folder = ROOT / ".venv-host-tests" / tag
    mark = folder / "installed"
    if not mark.exists() or mark.read_text(encoding="utf-8").split() != wanted:
        folder.mkdir(parents=True, exist_ok=True)
        if wanted:
            pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--disable-pip-version-check", "--no-warn-conflicts"]
            if subprocess.run([*pip, "--upgrade", "--target", str(folder), *wanted], check=False).returncode:
                raise InputError(f"pip could not install {', '.join(wanted)}; its message is above.")
        mark.write_text("\n".join(wanted), encoding="utf-8")
    return folder


def output_of(*command: str) -> str:
    """Return what a command prints, on one line; "" if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except OSError:
        return ""
    return "" if done.returncode else " ".join(done.stdout.split())


def state_of(checkout: Path) -> str:
    """Return the checkout's commit and date; raise ``InputError`` if our tests are not in it."""
    if not (checkout / "backend" / "tests" / "powercontext_support").is_dir():
        raise InputError(f"The backend's tests are not in {checkout}. Put them there first: make apply DEERFLOW={checkout}")
    return output_of("git", "-C", str(checkout), "log", "-1", "--format=%h of %cs") or "no commit known"


def run(checkout: Path, python: Path, arguments: list[str]) -> int:
    """Say what is tested with what, and return pytest's exit code."""
    commit = state_of(checkout)
    found = look(python, checkout)
    lacks = list(found["lacks"])
    folder = bring(python, str(found["tag"]), lacks)
    environment = environment_of(checkout)
    servers = [output_of(environment[name], "--version") for name in ("POWERCONTEXT_TEST_SERVER", "POWERCONTEXT_TEST_SERVER_1_2_0")]
    print(f"Python       {found['version']}, {python}")
    print(f"DeerFlow     {commit}, extension API {found['api']}, {checkout}")
    print(f"PowerContext {' and '.join(filter(None, servers)) or 'none: tests with a real server will be skipped'}")
    print(f"brought      {', '.join(lacks) or 'nothing'}{f', in {folder}' if lacks else ''}", flush=True)
    tests = sorted(str(file.relative_to(checkout / "backend")) for file in (checkout / "backend" / "tests").rglob("test_powercontext_*.py"))
    command = [str(python), "-c", RUN, str(folder), "-q", "-rs", "--no-fold-skipped", *(arguments or tests)]
    return subprocess.run(command, cwd=checkout / "backend", env=environment, check=False).returncode


def main() -> int:
    """Read the command line; return pytest's exit code, or 2 if the input cannot be used."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path, help="the top folder of a DeerFlow checkout after `make apply`")
    parser.add_argument("--python", type=Path, help="the Python that this DeerFlow runs with (default: its backend/.venv)")
    parser.add_argument("arguments", nargs="*", help="for pytest, instead of all tests; paths as seen from the checkout's backend")
    options = parser.parse_args()
    checkout = options.checkout.expanduser().resolve()
    python = (options.python or checkout / "backend" / ".venv" / "bin" / "python").expanduser().absolute()
    try:
        return run(checkout, python, options.arguments)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
