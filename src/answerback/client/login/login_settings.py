"""`Login`: an OAuth login's settings, for `connect(url, auth=Login(...))`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from ...auth.bearer import is_secure
from ...core.secrets import mask_url
from ..faults import LoginError
from ..targets import BadTarget
from .discovery import bearer_challenge
from .token_store import LoginRecords, MemoryTokens, RegisteredClient, TokenStore
from .user_consent import LoopbackRedirect, OpenUrl, browser

if TYPE_CHECKING:
    from ..http_requests import AuthChallenge, ClientAuth
    from .server_login import ServerLogin

AskClient = Callable[[str], Any]
"""Called with the issuer's URL; returns a RegisteredClient, its id, or None. May be async."""
_ANY_PORT = "http://127.0.0.1:0/callback"


class LoginOptions(TypedDict, total=False):
    """Options for `Login`."""

    document: str
    """The https URL of your application's own metadata document, which serves as its client id."""
    name: str
    """The name that the program registers under; users see it when they are asked for consent."""
    ask_client: AskClient | None
    """Called with the URL of an issuer that does not register programs automatically; returns a
    RegisteredClient, its id, or None."""
    scopes: Sequence[str]
    """Scopes to request in addition to those that the server names."""
    store: TokenStore | None
    """Stores the tokens; in memory by default."""
    open_url: OpenUrl
    """Shows the user the login page: `browser` by default, or `paste` if there is no browser."""
    redirect_uri: str
    """The address on this machine that the browser returns to; any free port by default."""
    timeout: float
    """How many seconds the user has to log in; 300 by default."""
    assume_pkce: bool
    """Whether to assume that an issuer supports PKCE with S256 even if its metadata does not say
    so, as with Entra; False by default."""


class Login:
    """Logs in when a server asks for it and adds the tokens to requests.

    The client is the first of these that exists: *client*, which the issuer already knows, as a
    RegisteredClient or its id; your application's `document`; a newly registered client; or the
    one that `ask_client` returns. `LoginOptions` lists the options.
    """

    grant = "authorization_code"

    def __init__(
        self, client: RegisteredClient | str | None = None, **options: Unpack[LoginOptions]
    ) -> None:
        unknown = options.keys() - LoginOptions.__annotations__.keys()
        if unknown:
            raise TypeError(f"Login() has no option {', '.join(sorted(unknown))}")
        document, scopes = options.get("document", ""), options.get("scopes", ())
        if document and (not document.startswith("https://") or not is_secure(document)):
            raise ValueError(f"document={document!r} should be an https URL")
        if isinstance(scopes, str):
            raise TypeError(f"scopes={scopes!r} should be a list, such as {scopes.split()!r}")
        self.redirect_uri = options.get("redirect_uri", _ANY_PORT)
        LoopbackRedirect(self.redirect_uri)
        self.client = RegisteredClient(client) if isinstance(client, str) else client
        self.document = document
        self.ask_client = options.get("ask_client")
        self.name = options.get("name", "Answerback")
        self.scopes = tuple(scopes)
        self.records = LoginRecords(options.get("store") or MemoryTokens())
        self.open_url = options.get("open_url", browser)
        self.timeout = options.get("timeout", 300.0)
        self.assume_pkce = options.get("assume_pkce", False)

    def for_server(self, url: str) -> ServerLogin:
        """Return the login for one server; `connect` calls this."""
        from .server_login import ServerLogin

        return ServerLogin(self, url)

    def __repr__(self) -> str:
        client = self.document if self.client is None else self.client.id
        return f"<{type(self).__name__} {client or self.name}>"


class ClientCredentials(Login):
    """Logs in as the program itself, without a user (the `client_credentials` grant).

    *client* has a secret or a private key. *scopes* are requested in addition to those that the
    server names. *store* keeps the tokens; in memory by default.
    """

    grant = "client_credentials"

    def __init__(
        self,
        client: RegisteredClient,
        *,
        scopes: Sequence[str] = (),
        store: TokenStore | None = None,
    ) -> None:
        if client.secret is None and client.private_key is None:
            raise ValueError(f"{client!r} should have a secret or a private key")
        super().__init__(client, scopes=scopes, store=store)


class BearerToken:
    """Sends one token with every request: `connect(url, auth="token")`."""

    def __init__(self, token: str, url: str) -> None:
        if not is_secure(url):
            raise BadTarget(
                f"a token is only sent over https or to this machine, not to {mask_url(url)}"
            )
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise BadTarget("a token cannot contain spaces; pass other headers as headers=")
        self._headers = {"authorization": f"Bearer {token}"}

    async def headers(self) -> Mapping[str, str]:
        return self._headers

    async def challenged(self, challenge: AuthChallenge) -> Mapping[str, str]:
        if challenge.status == 403:
            asked = bearer_challenge(challenge.headers.get("www-authenticate", ""))
            needs = f"; it needs the scopes {' '.join(asked.scopes)}" if asked.scopes else ""
            text = f"the token does not allow this (HTTP status 403){needs}"
            raise LoginError(text, code="FORBIDDEN")
        raise LoginError("the server does not accept the token (HTTP status 401)")


def auth_for(
    url: str, headers: Mapping[str, str], auth: ClientAuth | Login | str
) -> ClientAuth | None:
    """Return one server's `auth`; an entry in a host's file may have its own credentials."""
    if isinstance(auth, str):
        return BearerToken(auth, url)
    if isinstance(auth, Login):
        has_own = any(name.lower() == "authorization" for name in headers)
        return None if has_own else auth.for_server(url)
    if isinstance(auth, type):
        raise TypeError(f"auth is the class {auth.__name__} itself; write {auth.__name__}(…)")
    return auth
