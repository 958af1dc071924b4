"""Replies that say what a user lacks and where to get it, for tools that check it themselves.

They are errors, so that a tool with a declared return type may return them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import CoroutineType
from typing import Any

from ..core.authentication import AppAuth
from ..core.reply import Error, Reply
from ..dialects.common import refusal_meta
from ..tools.context import current_runtime
from ..tools.requires import Refusal
from .links import Redeemed, check_page, link_to

LOGIN_REQUIRED = "LOGIN_REQUIRED"
SUBSCRIPTION_REQUIRED = "SUBSCRIPTION_REQUIRED"
LINK_REQUIRED = "LINK_REQUIRED"


def login_prompt(feature: str | None = None) -> Reply[Any]:
    """Return the reply to a caller who is not logged in; *feature* names what needs a login."""
    return _reply(login_refusal(feature))


def subscription_prompt(
    feature: str | None = None, user: object = None, *, plan: str = "", url: str | None = None
) -> Reply[Any]:
    """Return the reply to a *user* without a subscription.

    *plan* is the plan's name. *url* is the page to subscribe. *feature* names what needs it.
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
    """Return the reply to a *user* who has not linked an account, with *service* if it is named.

    *feature* names what needs the account. *url* is the page where accounts are linked, or a
    function, plain or async, that takes the user and the headers and returns the whole link; a
    service may make its own links. *headers* are the request's headers, for such a function.
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
    """Return the authentication of the app that runs, if its programs have keys, and no logins."""
    running = current_runtime()
    auth = None if running is None else running.auth
    return None if auth is None or auth.has_logins else auth


def login_refusal(feature: str | None = None, *, by_key: bool = True) -> Refusal:
    """Return the refusal of a caller without a user; *by_key* if it could send a key."""
    if by_key and (keys := keys_of_app()) is not None:
        return Refusal(keys.without_credentials, LOGIN_REQUIRED, feature=feature)
    text = f"You are not logged in. Log in to use {feature or 'this'}"
    return Refusal(text, LOGIN_REQUIRED, feature=feature)


def subscription_refusal(feature: str | None, plan: str, link: str | None) -> Refusal:
    name = f"active subscription {plan!r}" if plan else "active subscription"
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
