"""Who may use which Scope: one pure function, asked before any request (RFC section 5, "Authenticated owner")."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Self, TypeGuard

from pydantic import SecretStr

from .identifiers import has_the_shape_of_deerflows_ids


def is_usable_user_id(user_id: object) -> TypeGuard[str]:
    """Tell whether ``user_id`` can name a signed-in user.

    Absent, blank and padded ids cannot, nor can anything that is not exactly a ``str`` (a subclass could redefine
    equality), nor ``default``: DeerFlow's stand-in for a missing identity.
    """
    return type(user_id) is str and user_id != "" and user_id == user_id.strip() and user_id != "default"


@dataclass(frozen=True, slots=True, repr=False)
class Entry:
    """What the operator wrote for one person.

    Attributes:
        owner_user_id: The person's DeerFlow user id.
        scope_id: The Scope's id.
        token: The person's own bearer token; ``None`` for the one of everybody without.
        shared: Whether another person may have the same Scope.
    """

    owner_user_id: str
    scope_id: str
    token: str | None = None
    shared: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class Binding:
    """What one person may use: a Scope, and the token for it. Every operation on a Scope asks for one.

    Attributes:
        position: Its number, from 1. It names the binding in the log, where ids have no place.
        count: How many bindings there are.
        scope_id: The Scope's id.
        token: The bearer token; ``None`` if the server asks for none.
    """

    position: int
    count: int
    scope_id: SecretStr
    token: SecretStr | None

    def __repr__(self) -> str:
        return f"binding {self.position} of {self.count}"

    def __reduce__(self) -> str:
        raise TypeError("Binding holds a token and cannot be pickled")

    def __deepcopy__(self, memo: object) -> Self:
        return self


class People:
    """The people this process serves, each with one binding. Never changes."""

    def __init__(self, entries: Sequence[Entry], token: SecretStr | None) -> None:
        """Bind each person of ``entries``, which have passed the rules.

        ``token`` is for those without one of their own.
        """
        self._bindings = {
            entry.owner_user_id: Binding(
                position,
                len(entries),
                SecretStr(entry.scope_id),
                token if entry.token is None else SecretStr(entry.token),
            )
            for position, entry in enumerate(entries, 1)
        }

    def __repr__(self) -> str:
        return f"People({len(self._bindings)})"

    @property
    def bindings(self) -> list[Binding]:
        """All bindings, in order."""
        return list(self._bindings.values())

    @property
    def unlike_deerflows_ids(self) -> list[Binding]:
        """The bindings of people whose id has not the shape of DeerFlow's."""
        return [binding for user_id, binding in self._bindings.items() if not has_the_shape_of_deerflows_ids(user_id)]

    def without_a_binding(self, user_ids: Sequence[str]) -> list[int]:
        """Return which of ``user_ids`` have no binding, by their numbers, from 1."""
        return [number for number, user_id in enumerate(user_ids, 1) if self.binding_of(user_id) is None]

    def missing_from(self, user_ids: Collection[str]) -> list[Binding]:
        """Return the bindings of people who are not among ``user_ids``."""
        known = set(user_ids)
        return [binding for user_id, binding in self._bindings.items() if user_id not in known]

    def binding_of(self, user_id: object) -> Binding | None:
        """Return the binding of the person whose id is exactly ``user_id``, or ``None``.

        Args:
            user_id: What the host says about the caller; anything at all.
        """
        return self._bindings.get(user_id) if is_usable_user_id(user_id) else None
