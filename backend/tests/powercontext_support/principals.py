"""A launcher of an operator's own: PowerContext's server with a token for each principal. Runs where ``powercontext`` is installed.

``python principals.py PORT TOKENS``, where TOKENS is a JSON file ``{"<token>": "<principal>", …}``; the principal
``administrator`` may administer every Scope. The environment is that of ``powercontext server run``.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import uvicorn
from powercontext.builtin.persistence.migrations.server_readiness import prepare_server_storage
from powercontext.server.authentication import AuthenticationRejectedError, AuthenticationRequest, AuthenticationResult, ProviderReadiness
from powercontext.server.authz import PrincipalRef
from powercontext.server.authz.composition import open_builtin_access_control
from powercontext.server.factory import create_server_app
from powercontext.server.settings import ServerSettings

ADMINISTRATOR = PrincipalRef(type="service", id="administrator")


class Tokens:
    """Tells principals by their bearer tokens."""

    def __init__(self, principals: dict[str, str]) -> None:
        self._principals = principals

    async def authenticate(self, request: AuthenticationRequest, /) -> AuthenticationResult:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        name = self._principals.get(token)
        if scheme.lower() != "bearer" or name is None:
            raise AuthenticationRejectedError
        return AuthenticationResult(subject=ADMINISTRATOR if name == ADMINISTRATOR.id else PrincipalRef(type="user", id=name))

    async def readiness(self) -> ProviderReadiness:
        return ProviderReadiness(ready=True)


async def serve(port: int, principals: dict[str, str]) -> None:
    settings = ServerSettings()
    prepare_server_storage(settings)  # type: ignore[no-untyped-call]  # the schema comes before the grants in it
    async with open_builtin_access_control(settings.database, bootstrap_administrators=(ADMINISTRATOR,), deployment_id=settings.access.deployment_id) as access:
        app = create_server_app(settings=settings, authentication_provider=Tokens(principals), access_control=access)
        await uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, access_log=False)).serve()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))))
