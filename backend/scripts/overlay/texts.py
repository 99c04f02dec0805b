"""What a pull request with this backend says in DeerFlow's own files, and where: beside their OpenViking and Honcho.

DeerFlow asks a backend for these: a paragraph in the README, the example configuration, the list of backends, the
guidance for coding agents and the pages of its website.
"""

from __future__ import annotations

from dataclasses import replace

from checkout import MEMORY
from edits import Edit

PARAGRAPH = """
An opt-in `powercontext` backend recalls from a self-hosted PowerContext server
at the start of a conversation: bounded text with citations, found by the words
of the user's first message. The model saves what the user asks to have
remembered through the backend's own plugin tools, and reports only what the
server confirmed. No conversation is uploaded unless the operator opts in, and
DeerMem remains the default. See the [PowerContext guide](docs/POWERCONTEXT.md)
for its set-up and boundaries.
"""

EXAMPLE = """\
  #
  # PowerContext example (replace this DeerMem backend_config block when
  # manager_class is powercontext). The server, the user, the Scope and the token
  # come from POWERCONTEXT_DEERFLOW_ environment variables; see
  # docs/POWERCONTEXT.md. The model's tools also need the plugin
  # deerflow.agents.memory.backends.powercontext.remember_tool:install.
  #
  # backend_config:
  #   failure_policy:
  #     read: fail_open   # or fail_closed: a run stops where its recall fails
"""

LIST_ROW = """\
- `powercontext/` - optional remote PowerContext backend over HTTP: recall with
  citations at the start of a conversation, for signed-in users whom the operator
  binds to existing Scopes. Writes are explicit model tools (a plugin).
"""

SECTION = """\
## PowerContext Backend

The optional `powercontext/` backend is a remote-only HTTP adapter. It recalls on
the first turn of a conversation, within one deadline, and passes the server's
text on with its citations. Explicit writes are plugin tools of the model; add to
`plugins:` `use: "deerflow.agents.memory.backends.powercontext.remember_tool:install"`.

**Configuration** (under `memory.backend_config`; the binding comes from
`POWERCONTEXT_DEERFLOW_` environment variables, listed in
[powercontext/README.md](powercontext/README.md)):

| Key | Type | Default | Description |
|-----|------|---------|-------------|
| `failure_policy.read` | str | `fail_open` | Recall failure handling: `fail_open` (log and return empty) or `fail_closed` (raise `MemoryReadError`) |

A user without a binding gets no memory and causes no request. See `docs/POWERCONTEXT.md` for the set-up.

"""

GUIDANCE_BULLET = f"""\
- The optional `powercontext` backend under
  `packages/harness/{MEMORY.partition("harness/")[2]}/backends/powercontext/` is a
  remote-only HTTP adapter, selected with `memory.manager_class: powercontext`.
  Its settings are one frozen snapshot of `POWERCONTEXT_DEERFLOW_` variables; a
  user without a binding causes no request. Every exchange has one deadline, and
  `a*` methods offload. `add`, `aadd` and `add_nowait` upload no conversation by
  default; explicit writes are the plugin tools of `remember_tool:install`, which
  claim only what the server confirmed. Only one of its files imports DeerFlow, for
  the contract. Never log its token, Scope, user, query or memory text.
"""

GUIDANCE_LINES = """
PowerContext is a remote HTTP adapter whose settings are one frozen snapshot of
`POWERCONTEXT_DEERFLOW_` variables. A user without a binding causes no request.
Every exchange has one deadline; async methods offload synchronous HTTP work.
`add`, `aadd` and `add_nowait` upload no conversation by default; explicit writes
are plugin tools, which claim only what the server confirmed.
Only one of its files imports DeerFlow, for the contract.
Never log its token, Scope, user, query or memory text.
"""

BLOCKING_TEST = """\
  `test_powercontext_memory_backend.py` (locks the PowerContext backend's async
  methods offloading synchronous HTTP);
"""

WEBSITE_PARAGRAPH = """
The optional `powercontext` backend recalls from a self-hosted PowerContext
server. Its binding comes from `POWERCONTEXT_DEERFLOW_` environment variables;
`backend_config` takes only `failure_policy`. See `docs/POWERCONTEXT.md` in the
repository for the set-up.
"""

TABLE_ROW = """\
| `powercontext` | Remote | Recalls from a self-hosted PowerContext server, with citations; saves only what the user asks for |
"""

WEBSITE_SECTION = """\
## PowerContext backend

Set `manager_class: powercontext` to recall from a self-hosted PowerContext
server at the start of a conversation. Explicit saves are tools of the model,
which the plugin adds; DeerMem remains the default.

```yaml
memory:
  enabled: true
  injection_enabled: true
  manager_class: powercontext
  mode: middleware
  backend_config: {}

plugins:
  - use: "deerflow.agents.memory.backends.powercontext.remember_tool:install"
```

The server, the user, the Scope and the token come from
`POWERCONTEXT_DEERFLOW_` variables in the server environment. See
`docs/POWERCONTEXT.md` for all of them and their boundaries.

"""

WEBSITE = "frontend/src/content/en"
TOKEN_LINE = "# POWERCONTEXT_DEERFLOW_TOKEN=your-powercontext-bearer-token\n"


def _edits(path: str, *edits: tuple[str, str, str]) -> list[Edit]:
    """Return edits of one file that have one place each: what, the pattern, the text."""
    return [Edit(path, what, ((pattern, text),)) for what, pattern, text in edits]


EDITS = (
    Edit(
        "README.md",
        "a paragraph on the backend",
        (
            (r"\[Honcho backend guide\]\(.*\n(?:.+\n)*", PARAGRAPH),
            (r"\[OpenViking memory backend\]\(.*\n(?:.+\n)*", PARAGRAPH),
            (r"^### Long-Term Memory\n\n(?:.+\n)+", PARAGRAPH),
        ),
    ),
    Edit(
        f"{MEMORY}/AGENTS.md",
        "guidance on the backend",
        (
            (r"^- Honcho configuration objects reject .*\n", GUIDANCE_BULLET),
            (r"^Honcho configuration rejects .*\n(?:.+\n)*", GUIDANCE_LINES),
            (r"^- The optional `openviking` backend under\n(?:  .*\n)*", GUIDANCE_BULLET),
        ),
    ),
    *_edits(
        "config.example.yaml",
        ("the name in the list of backends", r"Backend selector: registered name \([\w/]+(?=\))", "/powercontext"),
        ("a commented example", r"(?=^  backend_config:\n)", EXAMPLE),
    ),
    *_edits(".env.example", ("the token's variable", r"^# OPENVIKING_API_KEY=.*\n", TOKEN_LINE)),
    *_edits(
        f"{MEMORY}/backends/README.md",
        ("a row in the list of backends", r"^- `deermem/`.*\n(?:(?:- |  ).*\n)*", LIST_ROW),
        ("a section on the configuration", r"(?=^## Reference\n)", SECTION),
    ),
    *_edits(
        "scripts/AGENTS.md",
        ("the blocking-IO test in the list", r"(?=^  `test_openviking_memory_backend\.py` \()", BLOCKING_TEST),
    ),
    *_edits(
        f"{WEBSITE}/application/configuration.mdx",
        ("the name in the list of backends", r"backend selector: .*openviking", " | powercontext"),
        ("a paragraph on the backend", r"`docs/OPENVIKING\.md` in the repository.*\n(?:.+\n)*", WEBSITE_PARAGRAPH),
    ),
    *_edits(
        f"{WEBSITE}/harness/memory.mdx",
        ("the name in the list of backends", r"Backend selector: deermem \(default\) .*openviking", " | powercontext"),
        ("a section on the backend", r"(?=^## Global vs per-agent memory\n)", WEBSITE_SECTION),
    ),
)
# What only a DeerFlow since October 2026 has: nobody needs to hear that an older one has no place for it.
NEWER = (
    *_edits(
        f"{MEMORY}/AGENTS.md",
        ("the folder", r"^- `backends/mem0/`, `backends/openviking/`(?=, and)", ", `backends/powercontext/`"),
    ),
    *_edits(
        f"{WEBSITE}/harness/memory.mdx",
        ("the name in the example", r"# backend selector: deermem \|.* openviking", " | powercontext"),
        ("a row in the table of backends", r"(?=^\| `noop` \| Local \|)", TABLE_ROW),
    ),
)
EDITS += tuple(replace(edit, needed=False) for edit in NEWER)
