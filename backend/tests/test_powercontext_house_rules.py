"""Rules of the backend folder that no other test would notice: what it imports, what an import costs, how long things are."""

from __future__ import annotations

import ast
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deerflow.agents.memory.backends import powercontext

FOLDER = Path(powercontext.__file__).parent
TESTS = Path(__file__).parent
SOURCES = sorted(FOLDER.rglob("*.py"))
TEST_SOURCES = sorted([*TESTS.glob("test_powercontext_*.py"), *(TESTS / "powercontext_support").glob("*.py")])

# Who may import what from outside the standard library, httpx, httpcore and pydantic.
ALLOWED = {"host.py": {"deerflow"}, "remember_tool.py": {"deerflow_extension_api", "langchain_core"}, "config_file.py": {"yaml"}}


def imports(source: Path) -> Iterator[tuple[str, bool]]:
    """Yield each absolute import's top-level package, and whether it runs when the module is imported."""
    tree = ast.parse(source.read_text(encoding="utf-8"))
    inside = {child for function in ast.walk(tree) if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) for child in ast.walk(function)}
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [str(node.module)]
        yield from ((name.split(".")[0], node not in inside) for name in names)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.relative_to(FOLDER).as_posix())
def test_each_module_imports_only_what_it_may(source: Path) -> None:
    allowed = {"httpx", "httpcore", "pydantic"} | ALLOWED.get(source.name, set()) | set(sys.stdlib_module_names)
    assert {name for name, _ in imports(source)} <= allowed
    eager = {name for name, runs_on_import in imports(source) if runs_on_import}
    assert not eager & {"deerflow_extension_api", "langchain_core", "yaml", "asyncio"}


# The house from the bottom up. A room or file may know itself and what stands below it, never what stands above.
FLOORS = (
    *("host", "errors", "deadline", "sanitizing", "transport", "settings", "api", "process", "diagnostics", "check_people"),
    *("recall", "tools", "capture", "management"),
    *("wrong_settings", "manager", "tool_mode_manager", "factory", "remember_tool", "doctor", "bind", "outbox", "__init__"),
)


def inner_imports(source: Path) -> Iterator[str]:
    """Yield the room or file each relative import of ``source`` names, also those for types only."""
    depth = len(source.relative_to(FOLDER).parts)
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            inside = source.relative_to(FOLDER).parts[: depth - node.level]
            yield from (name.split(".")[0] for name in [*inside[:1], *([] if inside else [node.module] if node.module else [alias.name for alias in node.names])])


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.relative_to(FOLDER).as_posix())
def test_no_room_knows_what_stands_above_it(source: Path) -> None:
    room = source.relative_to(FOLDER).parts[0].removesuffix(".py")
    below = FLOORS[: FLOORS.index(room) + 1]
    assert [other for other in inner_imports(source) if other not in below] == []


def test_the_contract_is_the_only_thing_taken_from_deerflow() -> None:
    lines = [line for source in SOURCES for line in source.read_text(encoding="utf-8").splitlines() if line.startswith(("from deerflow", "import deerflow"))]
    assert lines == ["from deerflow.agents.memory import manager as contract"]


@pytest.mark.parametrize("source", [*SOURCES, *TEST_SOURCES], ids=lambda source: source.name)
def test_files_and_functions_stay_short(source: Path) -> None:
    text = source.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= (250 if source in SOURCES else 300)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and source in SOURCES:
            body = node.body[1:] if ast.get_docstring(node) else node.body
            length = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
            assert length <= 30, f"{node.name} has {length} lines"


def ends_of_strings(tree: ast.AST) -> dict[int, float]:
    """Return at which byte of a line the last string ends that began there or above it."""
    ends: dict[int, float] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            last = node.end_lineno or 0
            ends |= dict.fromkeys(range(node.lineno, last), math.inf)
            ends[last] = max(ends.get(last, 0), node.end_col_offset or 0)
    return ends


def documentation(tree: ast.AST) -> set[int]:
    """Return the lines of docstrings."""
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
    return {line for node in texts for line in range(node.lineno, (node.end_lineno or 0) + 1)}


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.relative_to(FOLDER).as_posix())
def test_only_a_string_goes_beyond_column_120(source: Path) -> None:
    text = source.read_text(encoding="utf-8")
    tree = ast.parse(text)
    ends, documented = ends_of_strings(tree), documentation(tree)
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > 120:
            assert number not in documented, f"line {number}"
            end = ends.get(number, 0)
            behind = "" if end == math.inf else line.encode()[int(end) :].decode().split("#")[0]
            assert end, f"line {number}"
            assert set(behind) <= set(" ,)]}:"), f"line {number}"


IMPORT_PROBE = """
import sys, threading
import httpx, pydantic
from deerflow.agents.memory import manager
def audit(event, arguments):
    assert not event.startswith(("socket.", "subprocess.", "os.putenv")), event
sys.addaudithook(audit)
class NoEnvironment(dict):
    def __getitem__(self, name):
        assert name.startswith("PYDANTIC_"), name  # pydantic's own look, once a model
        raise KeyError(name)
    def get(self, name, default=None):
        assert name.startswith("PYDANTIC_"), name
        return default
    def __iter__(self): raise AssertionError("iterated")
    items = keys = values = __iter__
import os
os.environ = NoEnvironment()
before = set(sys.modules)
import deerflow.agents.memory.backends.powercontext
print(threading.active_count(), *sorted({name.split(".")[0] for name in set(sys.modules) - before} - sys.stdlib_module_names))
"""


def test_an_import_is_cheap_and_touches_nothing() -> None:
    command = [sys.executable, "-c", IMPORT_PROBE]
    environment = {"PYTHONPATH": ":".join(path for path in sys.path if path), "PATH": ""}
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60).stdout.split()
    # One thread, and no package beside our own that the host had not loaded: httpcore, the dearest, comes with the first call.
    assert printed == ["1", "deerflow"]
