"""The backend's README says what the settings are."""

from __future__ import annotations

from pathlib import Path

from deerflow.agents.memory.backends import powercontext
from deerflow.agents.memory.backends.powercontext.settings.loading import VARIABLES, PowerContextSettings, told_about

README = Path(powercontext.__file__).parent / "README.md"


def settings_table() -> str:
    """Return the table of settings, from the model."""
    lines = ["| variable | default | meaning |", "|---|---|---|"]
    for variable, name in VARIABLES.items():
        setting = PowerContextSettings.model_fields[name]
        value = ",".join(setting.default) if isinstance(setting.default, tuple) else setting.default
        default = "required" if setting.is_required() else told_about(name)["required"] or ("none" if value is None else f"`{value}`")
        lines.append(f"| `{variable}` | {default} | {setting.description} |")
    return "\n".join(lines)


def test_the_table_of_settings_is_the_models() -> None:
    text = README.read_text(encoding="utf-8")
    assert text.split("<!-- settings -->\n")[1].split("\n<!-- /settings -->")[0] == settings_table()
