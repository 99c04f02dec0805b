"""What a forked child must not share with its parent.

That is locks that may be held there, and connections the parent goes on using.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable


def in_forked_children(start_anew: Callable[[], None]) -> None:
    """Call the bound method ``start_anew`` in every forked child, before anything else runs there.

    This goes on as long as its object lives.
    """
    reference = weakref.WeakMethod(start_anew)

    def call() -> None:
        method = reference()
        if method is not None:
            method()

    if hasattr(os, "register_at_fork"):  # Windows has no fork
        os.register_at_fork(after_in_child=call)
