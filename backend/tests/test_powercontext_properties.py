"""Rules that hold for every input, searched for counter-examples."""

from __future__ import annotations

import json
import pickle
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from powercontext_support import OWNER

from deerflow.agents.memory.backends.powercontext.api.models import PreparedContext, Scope
from deerflow.agents.memory.backends.powercontext.api.server_models import Readiness, ServerInfo
from deerflow.agents.memory.backends.powercontext.errors import PowerContextStatusError, PowerContextTimeoutError
from deerflow.agents.memory.backends.powercontext.settings.people import Entry, People

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["schema", "status", "content", "content_bytes", "scope_id", "x"]), inner),
    max_leaves=12,
)
PREPARED = st.fixed_dictionaries(
    {
        "schema": st.sampled_from(["powercontext.prepared-context.v1", "powercontext.prepared-context.v2"]),
        "status": st.sampled_from(["ready", "empty", "partial"]),
        "content": st.none() | st.text(),
        "content_bytes": st.integers(-1, 40) | st.booleans() | st.floats() | st.text(max_size=2),
    }
)


def people(owner: str) -> People:
    """Return who may use a Scope if ``owner`` is the only one."""
    return People([Entry(owner, "scp_1")], None)


@given(
    st.text() | st.sampled_from([OWNER, "default", f" {OWNER}", f"{OWNER}\n"]) | st.none() | st.integers() | st.binary(),
    st.text() | st.just(OWNER),
)
def test_only_the_owners_exact_id_is_the_owner(user_id: Any, owner: str) -> None:
    expected = isinstance(user_id, str) and user_id == owner and owner not in ("", "default") and owner == owner.strip()
    assert (people(owner).binding_of(user_id) is not None) is expected


@given(st.text(min_size=1))
def test_a_usable_owner_admits_itself_and_no_padded_or_changed_form(owner: str) -> None:
    if owner.strip() == owner and owner != "default":
        assert people(owner).binding_of(owner) is not None
    for changed in (f"{owner} ", f" {owner}", f"{owner}x", owner[:-1], f"{owner}\x00"):
        assert people(owner).binding_of(changed) is None


@given(PREPARED)
@example({"schema": "powercontext.prepared-context.v1", "status": "ready", "content": "退款", "content_bytes": 6})
@example({"schema": "powercontext.prepared-context.v1", "status": "ready", "content": "", "content_bytes": 0})
@example({"schema": "powercontext.prepared-context.v1", "status": "empty", "content": None, "content_bytes": False})
def test_a_prepared_context_is_accepted_only_if_all_it_claims_is_true(reply: dict[str, Any]) -> None:
    consistent = (
        reply["schema"] == "powercontext.prepared-context.v1"
        and type(reply["content_bytes"]) is int
        and (
            (reply["status"] == "ready" and reply["content"] is not None and len(reply["content"].encode("utf-8", "surrogatepass")) == reply["content_bytes"])
            or (reply["status"] == "empty" and reply["content"] is None and reply["content_bytes"] == 0)
        )
    )
    try:
        accepted = PreparedContext.model_validate_json(json.dumps(reply))
    except ValueError:
        assert not consistent
    else:
        assert consistent
        assert accepted.content == reply["content"]


@given(JSON.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=200))
def test_no_reply_raises_anything_but_a_validation_error(body: bytes) -> None:
    for model in (PreparedContext, Readiness, Scope, ServerInfo):
        try:
            model.model_validate_json(body)
        except ValueError as error:
            shown = str(error)
            assert "input_value" not in shown


@given(st.sampled_from(["a", "b"]), st.booleans())
def test_errors_survive_a_pickle(message: str, sent: bool) -> None:
    error = pickle.loads(pickle.dumps(PowerContextTimeoutError(message, operation="prepare_context", may_have_been_sent=sent)))
    assert (str(error), error.operation, error.may_have_been_sent) == (message, "prepare_context", sent)
    status = pickle.loads(pickle.dumps(PowerContextStatusError(message, status_code=503, code="server_overloaded", operation="prepare_context")))
    assert (str(status), status.status_code, status.code, status.may_have_been_sent) == (message, 503, "server_overloaded", True)
