"""Stand-ins for five identity providers, over real HTTP: metadata, keys, logins and tokens.

Each has the provider's paths, its metadata as published, and its refusals. The claims of its
tokens, or its answers about opaque tokens, are those that docs/guides/recipes/logins.md shows. The
user agrees to every login.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, NamedTuple
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

from tests.auth.issuer import rsa_key, sign

Fields = dict[str, str]
Document = dict[str, Any]
Answer = tuple[int, Document]
SECRET = "the-secret-of-the-client"


class Client(NamedTuple):
    secret: str | None
    redirect: str


class Refused(Exception):
    """The provider's refusal of a login: its OAuth error and its own text."""


class StandIn:
    """What the providers have in common: the code flow with PKCE, keys, and JWTs."""

    name: ClassVar[str]
    hosts: ClassVar[tuple[str, ...]]
    """The addresses on the page that stand for this provider."""
    issuer_path: ClassVar[str]
    metadata_path: ClassVar[str]
    pages: ClassVar[Fields]
    """The paths of the metadata's members."""
    more: ClassVar[Document] = {}
    """Further members of the metadata."""
    client_id: ClassVar[str] = ""
    """A client that was registered by hand; empty if clients register themselves."""
    secret: ClassVar[str | None] = None
    answers_in_forms: ClassVar[bool] = False
    """Whether the token endpoint writes JSON only for clients that ask for it."""

    def __init__(self, base: str, shown: Document) -> None:
        self.base = base
        self.issuer = f"{base}{self.issuer_path}"
        self.shown = shown
        """The claims that the page shows."""
        self.counts: Counter[str] = Counter()
        self.asked: list[Fields] = []
        """The parameters of each authorization request."""
        self.away = False
        """Whether every request is answered with 502."""
        self.clients: dict[str, Client] = {}
        if self.client_id:
            self.clients[self.client_id] = Client(self.secret, "")
        self._codes: dict[str, Fields] = {}

    def metadata(self) -> Document:
        pages = {name: f"{self.base}{path}" for name, path in self.pages.items()}
        return {"issuer": self.issuer, **pages, **self.more}

    def token(self, **changes: Any) -> str:
        """A token with the page's claims, valid now; a change to None removes a claim."""
        return self.signed(self.now() | changes)

    def now(self) -> Document:
        """The page's claims, as if they had been issued a moment ago."""
        moment = int(time.time())
        times = {"iat": moment, "nbf": moment, "exp": moment + 600}
        return {**self.shown, **{name: times[name] for name in times if name in self.shown}}

    def signed(self, claims: Document) -> str:
        kept = {name: value for name, value in claims.items() if value is not None}
        header = {"alg": "RS256", "typ": "JWT", "kid": rsa_key().kid}
        return sign(header, json.dumps(kept).encode(), rsa_key())

    def check_login(self, asked: Fields) -> None:
        """Raise Refused for a login that this provider does not allow."""

    def token_for(self, asked: Fields) -> str:
        """The token for an authorization request that was granted."""
        raise NotImplementedError

    def answer(self, method: str, path: str, form: Fields, login: str) -> Answer | None:
        """The answer to a request for a page of this provider; None if it has no such page."""
        if method == "GET" and path == self.metadata_path:
            return 200, self.metadata()
        if method == "GET" and path == self.pages.get("jwks_uri"):
            return 200, {"keys": [rsa_key().as_dict(private=False)]}
        if method == "POST" and path == self.pages["token_endpoint"]:
            return self.exchange(form, login)
        if method == "POST" and path == self.pages.get("registration_endpoint"):
            return self.register(form)
        return None

    def register(self, form: Fields) -> Answer:
        new = secrets.token_hex(8)
        self.clients[new] = Client(None, json.loads(form["body"])["redirect_uris"][0])
        return 201, {**json.loads(form["body"]), "client_id": new}

    def authorize(self, asked: Fields) -> str:
        """Where the browser goes after the login."""
        self.asked.append(asked)
        answer = {"state": asked["state"]}
        try:
            client = self.clients.get(asked["client_id"])
            if client is None or client.redirect not in ("", asked["redirect_uri"]):
                raise Refused("unauthorized_client", "unknown client or redirect address")
            if asked.get("code_challenge_method") != "S256":
                raise Refused("invalid_request", "PKCE is required")
            self.check_login(asked)
            answer["code"] = secrets.token_hex(16)
            self._codes[answer["code"]] = asked
        except Refused as exc:
            answer["error"], answer["error_description"] = exc.args
        if self.more.get("authorization_response_iss_parameter_supported"):
            answer["iss"] = self.issuer
        return f"{asked['redirect_uri']}?{urlencode(answer)}"

    def exchange(self, form: Fields, login: str) -> Answer:
        asked = self._codes.pop(form.get("code", ""), None)
        if asked is None:
            return 400, {"error": "invalid_grant"}
        client = self.clients[asked["client_id"]]
        if client.secret is not None and _secret(form, login) != client.secret:
            return 401, {"error": "invalid_client"}
        digest = sha256(form["code_verifier"].encode()).digest()
        if urlsafe_b64encode(digest).rstrip(b"=").decode() != asked["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        token = self.token_for(asked)
        return 200, {"access_token": token, "token_type": "Bearer", "expires_in": 600}


def _secret(form: Fields, login: str) -> str:
    if login.startswith("Basic "):
        return unquote(b64decode(login.removeprefix("Basic ")).decode().partition(":")[2])
    return form.get("client_secret", "")


class Auth0(StandIn):
    name = "Auth0"
    hosts = ("https://example.eu.auth0.com",)
    issuer_path = "/"
    metadata_path = "/.well-known/oauth-authorization-server"
    pages: ClassVar = {
        "authorization_endpoint": "/authorize",
        "token_endpoint": "/oauth/token",
        "jwks_uri": "/.well-known/jwks.json",
        "registration_endpoint": "/oidc/register",
    }
    more: ClassVar = {
        "scopes_supported": ["openid", "profile", "offline_access"],
        "code_challenge_methods_supported": ["S256", "plain"],
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "none"],
        "authorization_response_iss_parameter_supported": True,
    }
    has_resource_profile = True
    """Whether the parameter `resource` names the API."""

    def token_for(self, asked: Fields) -> str:
        if not self.has_resource_profile:
            return self.encrypted_token()
        audience = [asked["resource"], f"{self.base}/userinfo"]
        scopes = [each for each in asked["scope"].split() if each != "notes.delete"]
        return self.token(aud=audience, azp=asked["client_id"], scope=" ".join(scopes))

    def encrypted_token(self) -> str:
        """A token for Auth0 itself, which a client gets that names no API."""
        header = urlsafe_b64encode(b'{"alg":"dir","enc":"A256GCM"}').rstrip(b"=").decode()
        return f"{header}..aXY.Y2lwaGVy.dGFn"


class Keycloak(StandIn):
    name = "Keycloak"
    hosts = ("https://login.example.com",)
    issuer_path = "/realms/main"
    metadata_path = "/.well-known/oauth-authorization-server/realms/main"
    pages: ClassVar = {
        "authorization_endpoint": "/realms/main/protocol/openid-connect/auth",
        "token_endpoint": "/realms/main/protocol/openid-connect/token",
        "jwks_uri": "/realms/main/protocol/openid-connect/certs",
        "introspection_endpoint": "/realms/main/protocol/openid-connect/token/introspect",
        "registration_endpoint": "/realms/main/clients-registrations/openid-connect",
    }
    more: ClassVar = {
        "scopes_supported": ["openid", "offline_access", "notes.read", "notes.write", "profile"],
        "code_challenge_methods_supported": ["plain", "S256"],
        "token_endpoint_auth_methods_supported": ["private_key_jwt", "client_secret_basic"],
        "authorization_response_iss_parameter_supported": True,
    }
    allowed = frozenset({"notes.read", "notes.write", "offline_access", "profile", "email"})
    """The scopes of the policy for registrations."""

    def __init__(self, base: str, shown: Document) -> None:
        super().__init__(base, shown)
        self.ended: set[str] = set()
        """The tokens of users who have logged out."""

    def answer(self, method: str, path: str, form: Fields, login: str) -> Answer | None:
        if (method, path) != ("POST", self.pages["introspection_endpoint"]):
            return super().answer(method, path, form, login)
        if login != f"Basic {_basic('tools', SECRET)}":
            return 401, {"error": "unauthorized_client"}
        claims = json.loads(urlsafe_b64decode(form["token"].split(".")[1] + "=="))
        if form["token"] in self.ended or claims["exp"] < time.time():
            return 200, {"active": False}
        more = {"client_id": claims["azp"], "username": "anna", "token_type": "Bearer"}
        return 200, {**claims, **more, "active": True}

    def register(self, form: Fields) -> Answer:
        asked = json.loads(form["body"])
        if "resource" in asked:
            return 400, {"error": "invalid_client_metadata"}
        if not {*asked.get("scope", "").split()} <= self.allowed:
            return 403, {"error": "insufficient_scope", "error_description": "Policy rejected"}
        status, made = super().register(form)
        secret = SECRET if asked.get("token_endpoint_auth_method") != "none" else None
        self.clients[made["client_id"]] = Client(secret, asked["redirect_uris"][0])
        return status, made | ({"client_secret": secret} if secret else {})

    def token_for(self, asked: Fields) -> str:
        # The parameter `resource` is ignored: the audience is the mapper's of the client scopes.
        own = [each for each in asked["scope"].split() if each.startswith("notes.")]
        audience = self.shown["aud"] if own else None
        scope = " ".join((*own, "profile", "email"))
        return self.token(aud=audience, azp=asked["client_id"], scope=scope)


class Entra(StandIn):
    name = "Entra ID"
    hosts = ("https://login.microsoftonline.com",)
    issuer_path = "/11111111-2222-3333-4444-555555555555/v2.0"
    metadata_path = f"{issuer_path}/.well-known/openid-configuration"
    pages: ClassVar = {
        "authorization_endpoint": "/11111111-2222-3333-4444-555555555555/oauth2/v2.0/authorize",
        "token_endpoint": "/11111111-2222-3333-4444-555555555555/oauth2/v2.0/token",
        "jwks_uri": "/11111111-2222-3333-4444-555555555555/discovery/v2.0/keys",
    }
    # It does not mention PKCE, nor the registration of clients.
    more: ClassVar = {
        "scopes_supported": ["openid", "profile", "email", "offline_access"],
        "token_endpoint_auth_methods_supported": [
            *("client_secret_post", "private_key_jwt", "client_secret_basic")
        ],
        "subject_types_supported": ["pairwise"],
    }
    client_id = "99999999-8888-7777-6666-555555555555"
    application_uri = ""
    """The Application ID URI of the server's registration."""

    def check_login(self, asked: Fields) -> None:
        own = [each for each in asked["scope"].split() if each not in self.more["scopes_supported"]]
        for scope in own:
            uri, _, name = scope.rpartition("/")
            if uri != self.application_uri:
                text = f"AADSTS650053: asked for scope '{name}' that doesn't exist on the resource"
                raise Refused("invalid_client", text)
        if asked.get("resource", self.application_uri) != self.application_uri:
            raise Refused("invalid_target", "AADSTS9010010: The resource parameter doesn't match")
        if urlsplit(asked["redirect_uri"]).hostname != "localhost":
            raise Refused("invalid_request", "AADSTS50011: The redirect URI does not match")

    def token_for(self, asked: Fields) -> str:
        names = [each.rpartition("/")[2] for each in asked["scope"].split() if "/" in each]
        return self.token(azp=asked["client_id"], scp=" ".join(names))


class _OpaqueTokens(StandIn):
    """A provider whose tokens mean something only to itself."""

    prefix: ClassVar[str]
    secret = SECRET

    def __init__(self, base: str, shown: Document) -> None:
        super().__init__(base, shown)
        self.issued: dict[str, Document] = {}

    def token(self, **changes: Any) -> str:
        made = f"{self.prefix}{secrets.token_hex(20)}"
        self.issued[made] = self.now() | changes
        return made


class Google(_OpaqueTokens):
    name = "Google"
    hosts = ("https://accounts.google.com", "https://oauth2.googleapis.com")
    prefix = "ya29."
    issuer_path = ""
    metadata_path = "/.well-known/openid-configuration"
    pages: ClassVar = {
        "authorization_endpoint": "/o/oauth2/v2/auth",
        "token_endpoint": "/token",
        "jwks_uri": "/oauth2/v3/certs",
        "revocation_endpoint": "/revoke",
    }
    more: ClassVar = {
        "scopes_supported": ["openid", "email", "profile"],
        "code_challenge_methods_supported": ["plain", "S256"],
        "token_endpoint_auth_methods_supported": ["client_secret_post", "client_secret_basic"],
    }
    client_id = "407408718192-abc.apps.googleusercontent.com"

    def now(self) -> Document:
        # The numbers are texts.
        return {**self.shown, "exp": str(int(time.time()) + 600)}

    def check_login(self, asked: Fields) -> None:
        unknown = [each for each in asked["scope"].split() if each.startswith("notes")]
        if unknown:
            raise Refused("invalid_scope", f"Some requested scopes were invalid: {unknown}")

    def token_for(self, asked: Fields) -> str:
        client = asked["client_id"]
        return self.token(azp=client, aud=client, scope=asked["scope"])

    def answer(self, method: str, path: str, form: Fields, login: str) -> Answer | None:
        if (method, path) != ("POST", "/tokeninfo"):
            return super().answer(method, path, form, login)
        found = self.issued.get(form["access_token"])
        if found is None or int(found["exp"]) < time.time():
            return 400, {"error": "invalid_token", "error_description": "Invalid Value"}
        return 200, found


class GitHub(_OpaqueTokens):
    name = "GitHub"
    hosts = ("https://github.com", "https://api.github.com")
    prefix = "gho_"
    issuer_path = "/login/oauth"
    metadata_path = "/.well-known/oauth-authorization-server/login/oauth"
    pages: ClassVar = {
        "authorization_endpoint": "/login/oauth/authorize",
        "token_endpoint": "/login/oauth/access_token",
    }
    more: ClassVar = {
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "code_challenge_methods_supported": ["S256"],
    }
    client_id = "Iv1.8a61f9b3a7aba766"
    answers_in_forms = True

    def token_for(self, asked: Fields) -> str:
        # Unknown scopes are ignored.
        known = [each for each in asked["scope"].split() if each in ("read:user", "user", "repo")]
        return self.token(scopes=known)

    def answer(self, method: str, path: str, form: Fields, login: str) -> Answer | None:
        if method != "POST" or not path.startswith("/applications/"):
            return super().answer(method, path, form, login)
        if login != f"Basic {_basic(self.client_id, SECRET)}":
            return 401, {"message": "Bad credentials"}
        found = self.issued.get(json.loads(form["body"])["access_token"])
        # It says nothing about the tokens of other applications.
        if found is None or path != f"/applications/{found['app']['client_id']}/token":
            return 404, {"message": "Not Found"}
        return 200, found


def _basic(name: str, secret: str) -> str:
    return b64encode(f"{name}:{secret}".encode()).decode()


PROVIDERS: tuple[type[StandIn], ...] = (Auth0, Keycloak, Entra, Google, GitHub)


class _Handler(BaseHTTPRequestHandler):
    provider: StandIn

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        provider = self.provider
        if path == provider.pages["authorization_endpoint"]:
            asked = {name: values[0] for name, values in parse_qs(query).items()}
            self._send(302, {}, provider.authorize(asked))
        else:
            self._answer("GET", path, {})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        if self.headers["content-type"].startswith("application/json"):
            form = {"body": body}
        else:
            form = {name: values[0] for name, values in parse_qs(body).items()}
        self._answer("POST", self.path, form)

    def _answer(self, method: str, path: str, form: Fields) -> None:
        provider = self.provider
        provider.counts[path] += 1
        login = self.headers.get("authorization", "")
        found = (502, {}) if provider.away else provider.answer(method, path, form, login)
        self._send(*(found or (404, {})))

    def _send(self, status: int, document: Document, location: str = "") -> None:
        body, kind = json.dumps(document).encode(), "application/json"
        if self._wants_form():
            body, kind = urlencode(document).encode(), "application/x-www-form-urlencoded"
        self.send_response(status)
        if location:
            self.send_header("location", location)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _wants_form(self) -> bool:
        wants_json = "json" in self.headers.get("accept", "")
        return self.path == self.provider.pages["token_endpoint"] and (
            self.provider.answers_in_forms and not wants_json
        )

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(kind: type[StandIn], shown: str, address: str) -> Iterator[StandIn]:
    """A provider, with the page's claims in JSON; *address* is the MCP endpoint's."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    base = f"http://127.0.0.1:{server.server_port}"
    provider = kind(base, json.loads(moved(kind, shown, base, address)))
    server.RequestHandlerClass = type("_Bound", (_Handler,), {"provider": provider})
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)


def moved(kind: type[StandIn], text: str, base: str, address: str) -> str:
    """A text of the page with the stand-in in place of the provider, and the server's address."""
    for host in kind.hosts:
        text = text.replace(host, base)
    return text.replace("https://tools.example.com/mcp", address)
