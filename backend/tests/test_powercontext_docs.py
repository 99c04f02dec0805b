"""The guide for operators and the README: what they tell to run does run and shows what they show, and what they quote is in the code.

`<!-- runs -->` before a block in the Markdown says that the block runs here, `<!-- shows -->` that it is what the block before it prints.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from powercontext_support.overlay import DEERFLOW, write
from powercontext_support.real_server import find_executable

from deerflow.agents.memory import manager
from deerflow.agents.memory.backends import powercontext

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "POWERCONTEXT.md"
CHINESE = ROOT / "docs" / "POWERCONTEXT_zh.md"
DOCKER = ROOT / "docs" / "POWERCONTEXT_DOCKER.md"
DOCKER_CHINESE = ROOT / "docs" / "POWERCONTEXT_DOCKER_zh.md"
PAIRS = [(GUIDE, CHINESE), (DOCKER, DOCKER_CHINESE)]
README = ROOT / "README.md"
SOURCES = sorted(Path(powercontext.__file__).parent.rglob("*.py"))
# In a DeerFlow checkout README.md and Makefile are DeerFlow's own.
AT_HOME = (ROOT / "docs" / "DESIGN.md").exists()

pytestmark = pytest.mark.skipif(not all(file.exists() for pair in PAIRS for file in pair), reason="the guide is not here")
at_home = pytest.mark.skipif(not AT_HOME, reason="this is not the backend's own project")


@dataclass(frozen=True)
class Block:
    """A fenced block, with what the comment before it says of it."""

    mark: str
    language: str
    text: str


def blocks(file: Path) -> list[Block]:
    found = re.findall(r"(?:^<!-- (\w+) -->\n)?^```(\w*)\n(.*?)^```$", file.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [Block(*parts) for parts in found]


def runnable(file: Path) -> Iterator[tuple[str, str | None]]:
    """Yield each block that runs, with what it shows, if the guide says so."""
    found = blocks(file)
    for block, following in zip(found, [*found[1:], Block("", "", "")], strict=True):
        if block.mark == "runs":
            assert block.language == "bash"
            yield block.text, following.text if following.mark == "shows" else None


def headings(file: Path) -> list[str]:
    prose = re.sub(r"^```.*?^```$", "", file.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"^(#+ (?:\d+\.)?)", prose, re.MULTILINE)


# ---- both languages


@pytest.mark.parametrize(("english", "chinese"), PAIRS, ids=["guide", "docker"])
def test_both_languages_have_the_same_blocks_and_sections(english: Path, chinese: Path) -> None:
    assert blocks(chinese) == blocks(english)
    assert headings(chinese) == headings(english)


@pytest.mark.parametrize("file", [file for pair in PAIRS for file in pair], ids=lambda file: file.name)
def test_every_mark_belongs_to_a_block(file: Path) -> None:
    marks = re.findall(r"<!-- (\w+) -->", file.read_text(encoding="utf-8"))
    assert marks == [block.mark for block in blocks(file) if block.mark]
    assert set(marks) <= {"runs", "shows"}


@pytest.mark.parametrize("file", [GUIDE, CHINESE], ids=lambda file: file.name)
def test_the_contents_name_every_section_and_each_link_leads_to_one(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    titles = re.findall(r"^## (.+)$", text, re.MULTILINE)
    anchors = [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles]
    assert re.findall(r"\]\(#(.+?)\)", text.partition("\n## ")[0]) == anchors


@pytest.mark.parametrize("file", [GUIDE, CHINESE], ids=lambda file: file.name)
def test_the_quick_start_is_at_most_25_lines_of_commands(file: Path) -> None:
    quick_start = file.read_text(encoding="utf-8").split("\n## ")[1]
    commands = re.findall(r"^```bash\n(.*?)^```$", quick_start, re.MULTILINE | re.DOTALL)
    assert len(commands) == 3
    assert sum(len(block.strip().splitlines()) for block in commands) <= 25


def test_the_launcher_in_the_guide_is_the_one_the_tests_use() -> None:
    launcher = (Path(__file__).parent / "powercontext_support" / "principals.py").read_text(encoding="utf-8")
    assert [block.text for block in blocks(GUIDE) if block.language == "python"] == [launcher]


# ---- what is quoted is in the code, and what is in the code is told


def texts_of(node: ast.AST) -> list[str]:
    return [part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)]


def log_tables(file: Path) -> str:
    """Return the rows of the tables that quote what the backend says: section 9."""
    sections = re.split(r"^## ", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return "\n".join(line for section in sections if section.startswith("9. ") for line in section.splitlines() if line.startswith("|"))


def test_what_the_guide_quotes_is_in_the_code() -> None:
    code = "\n".join("\n".join(texts_of(ast.parse(source.read_text(encoding="utf-8")))) for source in SOURCES)
    rows = [[cell.strip() for cell in line.split("|")[1:]] for line in log_tables(GUIDE).splitlines()]
    cells = [row[1] if row[0] in ("INFO", "WARNING", "ERROR", "error") else row[0] for row in rows]
    quoted = [quote for cell in cells for quote in re.findall(r"`(.+?)`", cell)]
    assert len(quoted) > 40
    for quote in quoted:
        for fragment in re.split(r"<\w+>|[.:] ", quote):
            words = fragment.strip(".: ").split()
            # Where a message is put together from two, as in "%s until it is back", both parts have to be there.
            cuts = range(len(words) + 1)
            assert any(" ".join(words[:cut]) in code and " ".join(words[cut:]) in code for cut in cuts), quote


def logged() -> Iterator[str]:
    """Yield the start of every line over DEBUG that the backend logs in its own words."""
    for source in SOURCES:
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("logger.info", "logger.warning", "logger.error", "logger.log"):
                texts = [text for argument in node.args for text in texts_of(argument)]
                yield from (re.split(r"[%:(;]", text)[0].strip() for text in texts[:1])


@pytest.mark.parametrize("file", [GUIDE, CHINESE], ids=lambda file: file.name)
def test_every_line_that_the_backend_logs_is_in_the_guide(file: Path) -> None:
    starts = set(logged()) - {""}
    assert len(starts) > 20
    assert {start for start in starts if start not in log_tables(file)} == set()


# ---- YAML and Compose


def documents(file: Path) -> list[dict[str, Any]]:
    return [yaml.safe_load(block.text) for block in blocks(file) if block.language == "yaml"]


def test_the_yaml_parses_and_says_what_the_example_configuration_says() -> None:
    [config] = documents(GUIDE)
    for compose in documents(DOCKER):
        assert set(compose) == {"services", "volumes"}
    if AT_HOME:
        assert config == yaml.safe_load((ROOT / "config.example.yaml").read_text(encoding="utf-8"))


BASE = """\
services:
  gateway: {image: gateway, networks: [deer-flow]}
networks:
  deer-flow: {}
"""


@pytest.mark.parametrize("number", [0, 1], ids=["sidecar", "tls"])
def test_compose_accepts_the_files(number: int, tmp_path: Path) -> None:
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True, check=False, timeout=30).returncode:
        pytest.skip("no docker with compose here")
    (tmp_path / "base.yaml").write_text(BASE)
    (tmp_path / "override.yaml").write_text(json.dumps(documents(DOCKER)[number]))
    command = [docker, "compose", "-f", "base.yaml", "-f", "override.yaml", "config", "--quiet"]
    done = subprocess.run(command, cwd=tmp_path, env=os.environ | {"POWERCONTEXT_DEERFLOW_TOKEN": "t"}, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


# ---- the commands


@at_home
def test_the_readmes_first_screen_is_short() -> None:
    lines = README.read_text(encoding="utf-8").splitlines()
    second = next(number for number, line in enumerate(lines, start=1) if line.startswith("## "))
    assert second <= 40


@at_home
def test_every_make_target_that_is_named_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    theirs = {"dev", "start", "stop", "up"}  # DeerFlow's own
    named = {name for file in (README, GUIDE, DOCKER) for name in re.findall(r"(?:^|`)make ([a-z-]+)", file.read_text(encoding="utf-8"), re.MULTILINE)}
    assert {"apply", "demo", "unapply"} <= named
    assert {name for name in named - theirs if f"\n{name}:" not in makefile} == set()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a home directory with what the guide finds there: a DeerFlow checkout with a Python, and this project."""
    checkout = tmp_path / "deer-flow"
    write(checkout, DEERFLOW)
    (checkout / "config.yaml").write_text(next(block.text for block in blocks(GUIDE) if block.language == "yaml"))
    subprocess.run(["git", "init", "--quiet", str(checkout)], check=True, timeout=30)
    # Its Python finds the host's contract as this test does, and the backend where `make apply` puts it.
    python = checkout / "backend/.venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{Path(manager.__file__).parents[3]}:{checkout}/backend/packages/harness" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    (tmp_path / "powercontext-memory-for-deerflow").symlink_to(ROOT)
    if server := find_executable():
        (tmp_path / "powercontext").mkdir()
        (tmp_path / "powercontext/venv").symlink_to(Path(server).parents[1])
    return tmp_path


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def run_in_one_session(texts: list[str], home: Path) -> list[str]:
    """Run ``texts`` as somebody types them into one shell, and return what each printed."""
    script = "set -e\n" + "".join(f"{text}echo '=====END====='\n" for text in texts)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("POWERCONTEXT_", "DEER_FLOW_", "SSL_", "MAKE")) and not name.lower().endswith("_proxy")}
    environment = kept | {"HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(["bash", "-c", script], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=280)
    finally:
        for pid in home.glob("powercontext/pid"):  # of the server, if a block failed before it was stopped
            subprocess.run(["kill", pid.read_text().strip()], capture_output=True, check=False, timeout=10)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split("=====END=====\n")[:-1]


def shape(text: str) -> str:
    """Return ``text`` without what differs from run to run."""
    return re.sub(r"\b\d+ ms of", "<n> ms of", re.sub(r"\b(art|scp)_\w+", r"\1_<id>", text))


commands = pytest.mark.skipif(any(shutil.which(name) is None for name in ("bash", "curl", "git", "make", "openssl")), reason="bash, curl, git, make or openssl is not here")


@at_home
@commands
@pytest.mark.timeout(300)  # two starts of a server, on a machine that has other work
@pytest.mark.skipif(find_executable() is None, reason="no PowerContext server here")
def test_the_guides_commands_run_and_show_what_it_says(home: Path) -> None:
    port = free_port()
    texts = list(runnable(GUIDE))
    printed = run_in_one_session([re.sub(r"\b8000\b", port, text) for text, _ in texts], home)
    assert len(printed) >= 10
    expected = [shown for _, shown in texts]
    assert [shape(text) for text, shown in zip(printed, expected, strict=True) if shown] == [shape(shown) for shown in expected if shown]
    token = (home / "powercontext/token").read_text().strip()
    assert f"POWERCONTEXT_DEERFLOW_TOKEN={token}\n" in (home / "deer-flow/.env").read_text()  # the rotated one
    assert not (home / "deer-flow/docs/POWERCONTEXT.md").exists()  # unapplied
    private = [home / "deer-flow/.env", home / "powercontext/token", *(home / "powercontext/data").iterdir()]
    assert {path.stat().st_mode & 0o077 for path in private} == {0}


@at_home
@commands
def test_the_docker_guides_commands_run_and_show_what_it_says(home: Path) -> None:
    pytest.importorskip("certifi")
    texts = list(runnable(DOCKER))
    assert run_in_one_session([text for text, _ in texts], home) == [shown for _, shown in texts if shown]


@at_home
@commands
def test_the_readmes_way_into_a_deerflow_checkout_works(home: Path) -> None:
    [apply] = re.findall(r"^(make apply DEERFLOW=\S+)$", README.read_text(encoding="utf-8"), re.MULTILINE)
    command = apply.replace("../deer-flow", str(home / "deer-flow"))
    printed = run_in_one_session([f"{command}\n", f"{command.replace(' apply', ' unapply')}\n"], home)
    assert re.search(r"^Files: \d+ added, 0 updated, 0 removed, 0 of DeerFlow's own edited\.$", printed[0], re.MULTILINE)
    assert "POWERCONTEXT_DEERFLOW_OWNER_USER_ID=" in printed[0]
    assert re.match(r"Files: 0 added, 0 updated, \d+ removed, 0 of DeerFlow's own edited\.\n", printed[1])
