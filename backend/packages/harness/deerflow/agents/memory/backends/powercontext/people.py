"""Who may use the binding: one pure function, asked before any request (RFC section 5, "Authenticated owner")."""

from __future__ import annotations


def is_usable_user_id(user_id: object) -> bool:
    """Tell whether ``user_id`` can name a signed-in user.

    Absent, blank and padded ids cannot, nor can anything that is not exactly a ``str`` (a subclass could redefine
    equality), nor ``default``: DeerFlow's stand-in for a missing identity.
    """
    return type(user_id) is str and user_id != "" and user_id == user_id.strip() and user_id != "default"


def is_owner(user_id: object, owner_user_id: str) -> bool:
    """Tell whether ``user_id`` is the one signed-in user whose memory this process may reach.

    Args:
        user_id: What the host says about the caller; anything at all.
        owner_user_id: The configured owner. An unusable owner admits nobody.
    """
    return is_usable_user_id(user_id) and is_usable_user_id(owner_user_id) and user_id == owner_user_id
