"""Tells users what they lack and where to get it, in challenges, refusals and tools' replies.

The replies are errors, so that a tool with a declared return type can return them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import CoroutineType
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from ..calls.context import current_runtime
from ..core.authentication import AppAuth, Challenge, bearer_challenge, quotable
from ..core.json_value import JsonObject
from ..core.reply import Error, Reply
from ..core.request_info import RequestInfo
from ..dialects.common import refusal_meta
from ..registry.declarations import is_filtered
from ..tools.requires import BuiltinGate, Refusal
from .links import Redeemed, check_page, link_to

if TYPE_CHECKING:
    from ..tools.tool import Tool


WWW_AUTHENTICATE = "mcp/www_authenticate"
"""The `_meta` key that a result uses to ask the host to log in."""
LOGIN_REQUIRED = "LOGIN_REQUIRED"
SUBSCRIPTION_REQUIRED = "SUBSCRIPTION_REQUIRED"
LINK_REQUIRED = "LINK_REQUIRED"
T = TypeVar("T", bound="Tool")


def header_value(auth: AppAuth | None, challenge: Challenge) -> str:
    """Return the `WWW-Authenticate` value; without `auth=`, it does not say where to log in."""
    challenge = _quotable(challenge)
    return bearer_challenge(challenge) if auth is None else auth.www_authenticate(challenge)


def in_result(auth: AppAuth | None, challenge: Challenge) -> dict[str, list[str]]:
    """Return the `_meta` for a result that asks the host to log in; hosts require an error."""
    if auth is None:
        return {}
    if challenge.error is None:
        challenge = msgspec.structs.replace(challenge, error="insufficient_scope")
    return {WWW_AUTHENTICATE: [auth.www_authenticate(_quotable(challenge))]}


def url_value(url: str) -> str:
    """Return a URL as a header value: everything but printable ASCII is percent-encoded."""
    from urllib.parse import quote

    return quote(url, safe="!#$%&'()*+,/:;=?@[]~|", errors="replace")


def _quotable(challenge: Challenge) -> Challenge:
    """Return the challenge with its text made safe to put in quotation marks.

    A gate may repeat what the client sent, and an author's own authenticator might not escape it.
    """
    return msgspec.structs.replace(
        challenge,
        description=quotable(challenge.description),
        scopes=tuple(map(quotable, challenge.scopes)),
    )


def needs_login(tool: Tool) -> bool:
    """Return whether *tool* needs a login, because of its gates or the app's auth."""
    if tool.gates is not None and any(
        LOGIN_REQUIRED in codes_of(each) for each in tool.gates.declared
    ):
        return True
    auth = _auth_of(tool)
    return auth is not None and not auth.anonymous


def security_schemes(tool: Tool) -> list[JsonObject]:
    """Return the `securitySchemes` of *tool* for MCP hosts; empty if nothing is known.

    A login without `auth=` counts as OAuth, because `scope` and hosts support nothing else.
    """
    auth = _auth_of(tool)
    # API keys have no page that says where to log in.
    if auth is not None and auth.pages is None:
        return []
    if needs_login(tool):
        needed = scopes_of(tool)
        asked = needed if auth is None else auth.asked_scopes(needed)
        return [{"type": "oauth2", "scopes": list(asked)}]
    return [] if auth is None else [{"type": "noauth"}]


def scopes_of(tool: Tool) -> tuple[str, ...]:
    """Return all scopes that *tool* needs: those of its gates, and those every token needs."""
    auth = _auth_of(tool)
    from_auth = () if auth is None else auth.scopes
    from_gates = () if tool.gates is None else tool.gates.scopes
    return tuple(dict.fromkeys((*from_auth, *from_gates)))


def _auth_of(tool: Tool) -> AppAuth | None:
    """Return the authenticator of the app that serves *tool*."""
    return tool.path[0].auth if tool.path else None


def codes_of(gate: Callable[..., Any]) -> tuple[str, ...]:
    """Return the known codes of a gate's refusals."""
    return gate.codes if isinstance(gate, BuiltinGate) else ("FORBIDDEN", "TIMED_OUT")


def shown_to_all(tools: Iterable[T]) -> list[T]:
    """Return the tools to list in documents that are the same for every caller.

    This leaves out tools that a gate hides from some callers, and tools that `@app.visible` hides
    from a request without a user or headers.
    """
    anyone = RequestInfo("rest")
    return [
        each
        for each in tools
        if (each.gates is None or not each.gates.hiding) and not is_filtered(each, anyone)
    ]


def login_prompt(feature: str | None = None) -> Reply[Any]:
    """Return the reply to a caller without a login; *feature* names the feature that needs one."""
    return _reply(login_refusal(feature))


def subscription_prompt(
    feature: str | None = None, user: object = None, *, plan: str = "", url: str | None = None
) -> Reply[Any]:
    """Return the reply to a *user* without a subscription.

    *plan* is the plan's name. *url* is the page where the user can subscribe. *feature* names
    the feature that needs the plan.
    """
    link = None if url is None else _link(url, user, Redeemed(SUBSCRIPTION_REQUIRED, plan, feature))
    return _reply(subscription_refusal(feature, plan, link))


async def link_prompt(
    user: object,
    headers: Mapping[str, str] | None = None,
    *,
    service: str = "",
    feature: str | None = None,
    url: str | Callable[..., Any] | None = None,
) -> Reply[Any]:
    """Return the reply to a *user* who has not linked an account, with *service* if given.

    *feature* names the feature that needs the account. *url* is the page where accounts are linked,
    or a function, sync or async, that takes the user and the headers and returns the full link, for
    services that create their own links. *headers* are the request's headers, for that function.
    """
    if callable(url):
        link = url(user, headers)
        link = await link if isinstance(link, CoroutineType) else link
        check_page(link)
    elif url is not None:
        link = _link(url, user, Redeemed(LINK_REQUIRED, service, feature))
    else:
        link = None
    return _reply(link_refusal(feature, service, link))


def keys_of_app() -> AppAuth | None:
    """Return the running app's authentication if it has API keys but no logins."""
    running = current_runtime()
    auth = None if running is None else running.auth
    return None if auth is None or auth.has_logins else auth


def login_refusal(feature: str | None = None, *, by_key: bool = True) -> Refusal:
    """Return the refusal for a caller without a user; *by_key* if a key could have been sent."""
    if by_key and (keys := keys_of_app()) is not None:
        return Refusal(keys.without_credentials, LOGIN_REQUIRED, feature=feature)
    text = f"You are not logged in. Log in to use {feature or 'this'}"
    return Refusal(text, LOGIN_REQUIRED, feature=feature)


def subscription_refusal(feature: str | None, plan: str, link: str | None) -> Refusal:
    name = f"active {plan!r} subscription" if plan else "active subscription"
    text = f"You have no {name}. Subscribe to use {feature or 'this'}"
    return _leading_on(text, SUBSCRIPTION_REQUIRED, feature or plan or None, link)


def link_refusal(feature: str | None, service: str, link: str | None) -> Refusal:
    name = f"an account at {service!r}" if service else "an account"
    text = f"You have not linked {name}. Link one to use {feature or 'this'}"
    return _leading_on(text, LINK_REQUIRED, feature or service or None, link)


def _leading_on(text: str, code: str, feature: str | None, link: str | None) -> Refusal:
    hint = None if link is None else "open the link, then try again"
    return Refusal(text, code, hint=hint, url=link, feature=feature)


def _link(page: str, user: object, purpose: Redeemed) -> str | None:
    """Return the link for *user*; None without a user, because the token is for one user only."""
    return None if user is None else link_to(check_page(page), user, purpose)


def _reply(refusal: Refusal) -> Reply[Any]:
    error = Error(refusal.code, refusal.message, hint=refusal.hint)
    return Reply(error=error, meta=refusal_meta(error, refusal.url, refusal.feature))
