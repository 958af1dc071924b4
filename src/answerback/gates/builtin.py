"""Answerback's built-in gates: login, scope, subscription and linked accounts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..calls.context import Context
from ..core.authentication import is_scope_text
from ..tools.callable_source import callable_kind
from ..tools.requires import BuiltinGate, NeedsScopes, Refusal, UserGate
from .links import Redeemed, check_gate_page, link_to, page_url
from .prompts import (
    LINK_REQUIRED,
    LOGIN_REQUIRED,
    SUBSCRIPTION_REQUIRED,
    keys_of_app,
    link_refusal,
    login_refusal,
    subscription_refusal,
)

SCOPE_REQUIRED = "SCOPE_REQUIRED"


def login(*, hide: bool = False) -> Callable[..., Any]:
    """Require callers to be logged in.

    *hide* leaves gated entries out of other callers' lists, as if they did not exist.
    """
    return LoginGate(hide)


def scope(*names: str, hide: bool = False) -> Callable[..., Any]:
    """Require callers to have a token with all of these scopes.

    All of a tool's scopes are requested together, at the position of its first `scope`.
    *hide* leaves gated entries out of other callers' lists, as if they did not exist.
    """
    given: tuple[object, ...] = names
    are_scopes = all(isinstance(each, str) and each and is_scope_text(each) for each in given)
    if not names or not are_scopes:
        raise TypeError(f"scope takes names without spaces, as in scope('accounts:read'): {names}")
    return ScopeGate(names, hide)


def subscription(
    plan: str,
    *,
    check: Callable[..., Any] | None = None,
    url: str | None = None,
    feature: str | None = None,
) -> Callable[..., Any]:
    """Require users to have a plan; *check* takes `ctx` and returns whether the user has it.

    *url* is the page where a user can subscribe; a path such as "/plans" is relative to the origin
    of the app's URL. The link to it carries a token for that user, which `app.redeem` checks.
    *feature* names the feature that needs the plan, for messages.
    """
    check = _checked("subscription", plan, check)
    return EntitlementGate(SUBSCRIPTION_REQUIRED, plan, check, url, feature)


def linked(
    service: str,
    *,
    check: Callable[..., Any] | None = None,
    url: str | None = None,
    feature: str | None = None,
) -> Callable[..., Any]:
    """Require users to have linked an account with a service; *check* returns True if they have.

    *url* is the page where a user can link an account, as in `subscription`. *feature* names the
    feature that needs the account, for messages.
    """
    check = _checked("linked", service, check)
    return EntitlementGate(LINK_REQUIRED, service, check, url, feature)


class LoginGate(UserGate):
    """The gate that `login()` returns."""

    codes = (LOGIN_REQUIRED,)
    label = "login"

    def __init__(self, hide: bool) -> None:
        self.hide = hide

    def refuse_user(self, user: object) -> Refusal | None:
        return None if user is not None else login_refusal()

    def __call__(self, ctx: Context) -> Refusal | None:
        return None if ctx.user is not None else _not_logged_in(ctx)

    def __repr__(self) -> str:
        return "login()"


class ScopeGate(NeedsScopes):
    """The gate that `scope()` returns."""

    codes = (LOGIN_REQUIRED, SCOPE_REQUIRED)

    def __init__(self, names: tuple[str, ...], hide: bool) -> None:
        self.scopes = names
        self.label = f"scope {' '.join(names)}"
        self.hide = hide
        self._needed = frozenset(names)

    def with_scopes(self, names: tuple[str, ...]) -> ScopeGate:
        """Return the same gate for all of a tool's scopes."""
        return ScopeGate(names, self.hide)

    def refuse_user(self, user: object) -> Refusal | None:
        if user is None:
            return login_refusal()
        granted: Any = getattr(user, "scopes", ())
        if self._needed <= frozenset(granted):
            return None
        missing = ", ".join(each for each in self.scopes if each not in granted)
        if keys_of_app() is not None:
            text, hint = "This needs a scope that the key does not have", "use a key that has it"
        else:
            text, hint = "This needs more than you have allowed", "log in again and allow it"
        return Refusal(f"{text}: {missing}", SCOPE_REQUIRED, hint=hint, scopes=self.scopes)

    def __call__(self, ctx: Context) -> Refusal | None:
        return _not_logged_in(ctx) if ctx.user is None else self.refuse_user(ctx.user)

    def __repr__(self) -> str:
        return f"scope({', '.join(map(repr, self.scopes))})"


class EntitlementGate(BuiltinGate):
    """The gate that `subscription()` or `linked()` returns; it implies `login()`."""

    def __init__(
        self, code: str, name: str, check: Callable[..., Any], url: str | None, feature: str | None
    ) -> None:
        self.codes = (LOGIN_REQUIRED, code)
        self.is_async = callable_kind(check).is_async
        # A runner checks `is_async` to find out how to call this.
        self.__name__ = "subscription" if code == SUBSCRIPTION_REQUIRED else "linked"
        self.label = f"{self.__name__} {name}"
        self._name = name
        self._check = check
        self._feature = feature
        self._page = None if url is None else check_gate_page(url)

    def __repr__(self) -> str:
        return f"{self.__name__}({self._name!r})"

    def __call__(self, ctx: Context) -> object:
        if self.is_async:
            return self._pass_async(ctx)
        if ctx.user is None:
            return _not_logged_in(ctx)
        return self._decide(ctx, self._check(ctx))

    async def _pass_async(self, ctx: Context) -> Refusal | None:
        if ctx.user is None:
            return _not_logged_in(ctx)
        return self._decide(ctx, await self._check(ctx))

    def _decide(self, ctx: Context, has_it: object) -> Refusal | None:
        if not isinstance(has_it, bool):
            raise TypeError(
                f"the check for {self.__name__}({self._name!r}) returned {type(has_it).__name__}; "
                "return True or False"
            )
        if has_it:
            return None
        code = self.codes[-1]
        purpose = Redeemed(code, self._name, self._feature)
        page = None if self._page is None else page_url(self._page)
        link = None if page is None else link_to(page, ctx.user, purpose)
        refuse = subscription_refusal if code == SUBSCRIPTION_REQUIRED else link_refusal
        return refuse(self._feature, self._name, link)


def _checked(gate: str, name: object, check: Callable[..., Any] | None) -> Callable[..., Any]:
    """Return a gate's check; raises TypeError for an invalid check or name."""
    if not isinstance(name, str) or not name:
        raise TypeError(f"{gate} takes a name first, as in {gate}('pro', check=…), not {name!r}")
    if not callable(check):
        raise TypeError(
            f"{gate}({name!r}) needs check=, a function that takes ctx and returns True or False: "
            f"{gate}({name!r}, check=has_{gate}) with def has_{gate}(ctx) -> bool"
        )
    return check


def _not_logged_in(ctx: Context) -> Refusal:
    """Return the refusal for a call without a user; only an HTTP request can send a key."""
    return login_refusal(by_key=ctx.request.headers is not None)
