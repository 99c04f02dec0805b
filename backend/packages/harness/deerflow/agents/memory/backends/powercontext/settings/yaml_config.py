"""What ``memory.backend_config`` in DeerFlow's config.yaml may say: the read policy, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from ..errors import PowerContextConfigurationError
from .loading import ENVIRONMENT_PREFIX, VARIABLES, told_about

ReadPolicy = Literal["fail_open", "fail_closed"]


def parse_backend_config(backend_config: object) -> ReadPolicy:
    """Return the read policy of ``memory.backend_config``.

    ``storage_path`` and ``should_keep_hidden_message`` come from the host.

    Raises:
        PowerContextConfigurationError: Anything else is in it; the message names the variable to set instead, and no
            value.
    """
    config = {} if backend_config is None else backend_config
    if not isinstance(config, Mapping):
        raise PowerContextConfigurationError("memory.backend_config must be a mapping, such as {}")
    given = [str(key) for key in config if key not in ("storage_path", "should_keep_hidden_message", "failure_policy")]
    keys = ["".join(sign if sign.isprintable() else "?" for sign in key) for key in given]
    moved = {key: name for key in keys for name in VARIABLES.values() if key == name or key in told_about(name)["yaml"]}
    faults = [_to_be_moved(key, name) for key, name in moved.items()]
    if foreign := [key[:40] for key in keys if key not in moved]:
        faults.append(f"memory.backend_config has what belongs to another backend; remove {', '.join(foreign)}")
    policy = config.get("failure_policy", {"read": "fail_open"})
    if policy not in ({"read": "fail_open"}, {"read": "fail_closed"}):
        faults.append(
            "memory.backend_config.failure_policy must be {read: fail_open} or {read: fail_closed}, or absent",
        )
    if faults:
        raise PowerContextConfigurationError(
            "\n- ".join(
                [
                    "PowerContext memory is not configured. Correct this in config.yaml and restart the Gateway:",
                    *faults,
                ],
            ),
        )
    return "fail_closed" if policy == {"read": "fail_closed"} else "fail_open"


def _to_be_moved(key: str, name: str) -> str:
    variable = f"{ENVIRONMENT_PREFIX}{name.upper()}"
    return f"memory.backend_config.{key} is not read from YAML: set {variable} in the Gateway's environment and remove it"


def reads_are_fatal(backend_config: object) -> bool:
    """Tell whether memory that cannot be read stops the run.

    A policy that is there but wrong says yes: it meant something else than the default.
    """
    config = {} if backend_config is None else backend_config
    return not isinstance(config, Mapping) or config.get("failure_policy", {"read": "fail_open"}) != {
        "read": "fail_open",
    }
