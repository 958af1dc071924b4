"""Composition: apps within apps, and what is enabled in each.

When an app, or one it includes, changes, its tables are replaced, so that a call finds its tool
with one dict lookup. A new name is added to copies of the tables; other changes rebuild them.
"""

from __future__ import annotations

import re
from _thread import RLock
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Literal, TypeAlias
from weakref import ref

import msgspec

from ..contract import RESERVED_ROUTES
from ..tools.tool import Tool
from .declarations import Change, ListedKind, Registry, Table, adopt
from .lifespan import Lifespan

LISTED: tuple[ListedKind, ...] = ("tools", "resources", "prompts")
# One lock for all apps, because changing an app also changes the apps that include it.
lock = RLock()
Kind: TypeAlias = Literal["tools", "resources", "prompts", "completions"]
KINDS: tuple[Kind, ...] = ("tools", "resources", "prompts", "completions")
_PREFIX = re.compile(r"[A-Za-z0-9_.-]{0,64}")
_MAX_NAME = 128


class _Merged(msgspec.Struct):
    """All entries of one kind, and the ones that are served."""

    entries: dict[str, Tool]
    served: dict[str, Tool]


_Additions: TypeAlias = "dict[tuple[Composition, str], tuple[Tool, bool]]"
"""For each app and name, the entry to add and whether the app serves it."""


class Composition:
    """The apps that one app includes, the apps that include it, and what is enabled in it."""

    def __init__(self, app: Registry) -> None:
        self.app = app
        self.included: list[tuple[Registry, str]] = []
        self.parents: list[ref[Registry]] = []
        self.enabled = Enabled()
        self._views: dict[tuple[Kind, str], tuple[Tool, Tool]] = {}
        self.merged: dict[Kind, _Merged] = {}
        self.change()

    def apps(self) -> Iterator[Registry]:
        """Return the app and the apps it includes, without duplicates."""
        found = {id(self.app): self.app}
        for child, _ in self.included:
            found |= {id(each): each for each in child.apps() if id(each) not in found}
        return iter(found.values())

    def put(self, table: Table[Any], name: str, entry: Tool) -> None:
        """Add an entry; raises ValueError if its name clashes in an app that includes this one."""
        with lock:
            kind = next(kind for kind in KINDS if self.app.tables[kind] is table)
            added: _Additions = {}
            if self._plan(kind, name, entry, self.enabled.serves(name, entry), added):
                table.own[name] = entry
                for (composition, key), (view, served) in added.items():
                    composition._add(kind, key, view, served=served)
                return
            before = table.own.get(name)
            table.own[name] = entry

            def undo() -> None:
                table.own.pop(name)
                if before is not None:
                    table.own[name] = before

            self.change(undo)

    def _plan(self, kind: Kind, key: str, entry: Tool, served: bool, added: _Additions) -> bool:
        """Add a new entry to the plan, for this app and for the apps that include it.

        Return False if a name already exists; merging the tables then shows why.
        """
        if key in self.merged[kind].entries or (self, key) in added:
            return False
        added[self, key] = entry, served
        for parent in self.including():
            for prefix in [prefix for child, prefix in parent.included if child is self.app]:
                theirs = _key(kind, prefix, key)
                if theirs in parent.merged[kind].entries:
                    return False
                view = parent._view(kind, theirs, entry)
                is_served = served and parent.enabled.serves(theirs, view)
                if not parent._plan(kind, theirs, view, is_served, added):
                    return False
        return True

    def _add(self, kind: Kind, key: str, entry: Tool, *, served: bool) -> None:
        merged = self.merged[kind]
        merged.entries[key] = entry
        if served:
            table = self.app.tables[kind]
            # A new table, because other threads may be iterating over the old one.
            found = {**merged.served, key: entry}
            if self.included and key in table.own:
                # The app's own entries are listed before those of included apps.
                found = {name: found[name] for name in table.own if name in found} | found
            merged.served = found
            table.serve(found)

    def remove(self, table: Table[Any], name: str) -> None:
        with lock:
            if name not in table.own and (entry := table.get(name)) is not None:
                owner = entry.path[-1].name
                raise ValueError(
                    f"{name!r} belongs to the included app {owner!r}; remove it there or disable it"
                )
            del table.own[name]
            self.change()

    def change(self, undo: Callable[[], object] | None = None) -> None:
        """Rebuild the tables of this app, and of the apps that include it, after a change.

        If two entries would have the same name, call *undo* and raise ValueError.
        """
        try:
            planned: dict[Composition, dict[Kind, _Merged]] = {}
            waiting = [self]
            while waiting:
                each = waiting.pop(0)
                planned[each] = each._merge(planned)
                waiting += each.including()
        except BaseException:
            if undo is not None:
                undo()
            raise
        for composition, merged in planned.items():
            composition.merged = merged
            composition._views = {
                (kind, key): view
                for (kind, key), view in composition._views.items()
                if key in merged[kind].entries
            }
            for kind, entries in merged.items():
                composition.app.tables[kind].serve(entries.served)

    def check_include(self, other: Registry) -> None:
        """Raise ValueError if the app, or one above it, is being served and cannot add *other*."""
        hint = f"include it before {self.app.name!r} is served or called"
        for runtime in self.app.changes.attached():
            if other.lifespan is not None:
                raise ValueError(f"{other.name!r} has a lifespan; {hint}")
            for each in other.apps():
                if each.visible:
                    raise ValueError(f"{each.name!r} has @app.visible; {hint}")
                if not runtime.runs_middleware and (each.middleware or each.observers):
                    raise ValueError(f"{each.name!r} has middleware or observers; {hint}")
            check_auth(self.app, other.apps())
        for parent in self.including():
            parent.check_include(other)

    def join_lifespan(self, other: Registry) -> None:
        """Start and stop *other*'s lifespan along with those of the app and the apps above it."""
        if other.lifespan is None:
            return
        app = self.app
        if app.lifespan is None:
            app.lifespan = Lifespan(None, app)
        if other.lifespan not in app.lifespan.included:
            app.lifespan.included.append(other.lifespan)
        for each in self.including():
            each.join_lifespan(app)

    def including(self) -> Iterator[Composition]:
        for parent in self.parents:
            if (app := parent()) is not None and app.composition is not None:
                yield app.composition

    def _merge(self, planned: Mapping[Composition, dict[Kind, _Merged]]) -> dict[Kind, _Merged]:
        merged: dict[Kind, _Merged] = {}
        for kind in KINDS:
            own = self.app.tables[kind].own
            served = {name: each for name, each in own.items() if self.enabled.serves(name, each)}
            merged[kind] = _Merged(dict(own), served)
        for child, prefix in self.included:
            assert child.composition is not None
            theirs = planned.get(child.composition, child.composition.merged)
            for kind in KINDS:
                self._merge_included(kind, theirs[kind], prefix, merged[kind])
        return merged

    def _merge_included(self, kind: Kind, theirs: _Merged, prefix: str, into: _Merged) -> None:
        for name, entry in theirs.entries.items():
            key = _key(kind, prefix, name)
            if (present := into.entries.get(key)) is not None:
                # An app included twice contributes each resource once.
                if kind != "completions" and present.source is not entry.source:
                    raise ValueError(
                        f"there is already a {entry.noun} {key!r} in {self.app.name!r}, "
                        f"which includes {entry.path[-1].name!r}; give one a different name"
                    )
                view = present
            else:
                view = into.entries[key] = self._view(kind, key, entry)
            if name in theirs.served and self.enabled.serves(key, view):
                into.served.setdefault(key, view)

    def _view(self, kind: Kind, key: str, entry: Tool) -> Tool:
        """Return the entry as this app serves it, creating it only once."""
        known = self._views.get((kind, key))
        if known is None or known[0] is not entry:
            known = self._views[kind, key] = (entry, _view(kind, key, entry, self.app))
        return known[1]


def include(app: Registry, other: Registry, prefix: str) -> None:
    """Serve the entries of *other* in *app*; raises ValueError for a clash or a cycle."""
    wrong: object = prefix
    if not isinstance(wrong, str):
        raise TypeError(f"prefix={prefix!r} should be a str, such as prefix='jira_'")
    if not _PREFIX.fullmatch(prefix):
        raise ValueError(
            f"prefix={prefix!r} cannot begin a name; use up to 64 of A-Z a-z 0-9 _ . -"
        )
    with lock:
        if any(each is app for each in other.apps()):
            raise ValueError(f"{other.name!r} is or includes {app.name!r}: apps must not be cyclic")
        mine, theirs = app.composed(), other.composed()
        if any(each is other and known == prefix for each, known in mine.included):
            raise ValueError(f"{app.name!r} already includes {other.name!r}; pass a prefix")
        is_first = all(each is not other for each, _ in mine.included)
        if is_first:
            mine.check_include(other)
        mine.included.append((other, prefix))
        mine.change(mine.included.pop)
        if is_first:
            theirs.parents.append(ref(app))
            _forward_changes(app, other)
            mine.join_lifespan(other)
    for kind in LISTED:
        if theirs.merged[kind].served:
            app.changes.publish(Change(kind))


def check_auth(app: Registry, included: Iterable[Registry]) -> None:
    """Raise ValueError if *app* would serve tools to callers that the tools' own app rejects.

    The served app authenticates all requests with its own `auth=`.
    """
    for each in included:
        if each.auth is None or each is app:
            continue
        if app.auth is None:
            raise ValueError(
                f"{each.name!r} has auth=, but {app.name!r}, which includes it, has none: "
                f"pass auth= to {app.name!r} too"
            )
        if app.auth.anonymous and not each.auth.anonymous:
            raise ValueError(
                f"{each.name!r} requires a token, but {app.name!r}, which includes it, does not: "
                f"set anonymous=False in the auth= of {app.name!r}, or add requires=[login()] to "
                f"{each.name!r} and set anonymous=True in its auth="
            )


def _forward_changes(app: Registry, other: Registry) -> None:
    """Send each change in *other* to the clients of *app* too, for as long as *app* exists."""

    def forward(change: Change) -> None:
        if (parent := found()) is not None:
            parent.changes.publish(change)

    end = other.changes.subscribe(forward)
    found = ref(app, lambda _: end())


def _key(kind: Kind, prefix: str, name: str) -> str:
    """Return the name of an included entry. URIs and their completions have no prefix."""
    if kind == "resources":
        return name
    if kind == "completions":
        argument, _, owner = name.partition(" of ")
        return name if ":" in owner else f"{argument} of {prefix}{owner}"
    return prefix + name


_INDEPENDENT = frozenset({"signature", "docstring"})
"""A tool's cached parts that depend neither on its name nor on the contract."""


def _view(kind: Kind, key: str, entry: Tool, app: Registry) -> Tool:
    """Return a copy of *entry* with its name, contract and settings in *app*."""
    if kind in ("tools", "prompts") and len(key) > _MAX_NAME:
        raise ValueError(f"{key!r} is longer than {_MAX_NAME} characters; use a shorter prefix")
    if kind == "tools" and app.contract.route == "/" and key in RESERVED_ROUTES:
        raise ValueError(f"/{key} is one of the server's own routes; use another prefix")
    made = object.__new__(type(entry))
    inherited: dict[str, Any] = {}
    if kind == "tools":
        # Only the settings that neither the tool nor a nearer app has set.
        chosen, given = entry.settings.chosen, app.tool_defaults.items()
        inherited = {name: each for name, each in given if name not in chosen}
    is_same = entry.contract is app.contract and not inherited
    for name, value in vars(entry).items():
        is_cached = isinstance(getattr(type(entry), name, None), cached_property)
        if is_same or name in _INDEPENDENT or not is_cached:
            setattr(made, name, value)
    if inherited:
        chosen = entry.settings.chosen | inherited.keys()
        made.settings = msgspec.structs.replace(entry.settings, **inherited, chosen=chosen)
        made.budget = made.settings.budget
    if kind in ("tools", "prompts"):
        made.name = key
    made.contract = app.contract
    adopt(app, made)
    # Refuse a return type that *app*'s contract does not allow, as registration does.
    with suppress(NameError):
        _ = made.returns
    return made


class Switch(msgspec.Struct, frozen=True, array_like=True):
    """Enables or disables an entry or a tag in one of the combined apps."""

    app: int
    """The position of its app in `Registry.apps()`."""
    what: Literal["name", "tag"]
    value: str
    on: bool


class Enabled:
    """The names and tags that were enabled or disabled in one app."""

    def __init__(self) -> None:
        self.switches: dict[tuple[Literal["name", "tag"], str], bool] = {}
        """Of the switches that apply to an entry, the last one wins."""
        self.only: frozenset[str] = frozenset()
        self.without: frozenset[str] = frozenset()
        """The command line's tags; an entry they exclude cannot be enabled."""

    def serves(self, name: str, entry: Tool) -> bool:
        """Return whether an entry is served under this name."""
        tags = entry.settings.tags
        # Tags select tools, and a widget is served along with its tools.
        if self.only and self.only.isdisjoint(tags) and not entry.is_widget:
            return False
        if not self.without.isdisjoint(tags):
            return False
        served = True
        for (what, value), on in self.switches.items():
            if value == name if what == "name" else value in tags:
                served = on
        return served


def switch(app: Registry, name: str | None, tag: str | None, *, on: bool) -> None:
    """Enable or disable by name or by tag, here and in the other processes that serve the app."""
    if (name is None) == (tag is None):
        raise TypeError("give a name or a tag: app.disable('add') or app.disable(tag='write')")
    if name is not None:
        known = app.composed().merged
        if not any(name in known[kind].entries for kind in LISTED):
            raise ValueError(f"{app.name!r} has no tool, prompt or resource {name!r}")
    wanted = Switch(0, "tag" if name is None else "name", name or tag or "", on)
    # The other processes first: if they cannot be reached, nothing changes.
    _forward_switch(app, app, wanted)
    for kind in _apply(app, wanted):
        app.changes.publish(Change(kind))


def apply_switch(root: Registry, received: Switch) -> None:
    """Apply a switch from another process, which sends the notifications."""
    apps = list(root.apps())
    if received.app < len(apps):
        _apply(apps[received.app], received)


def apply_switches(root: Registry, received: Sequence[Switch]) -> None:
    """Make these switches the last ones in their apps, in this order."""
    current = switches_of(root)
    for number in {each.app for each in received}:
        wanted = [each for each in received if each.app == number]
        if [each for each in current if each.app == number][-len(wanted) :] != wanted:
            for each in wanted:
                apply_switch(root, each)


def switches_of(root: Registry) -> list[Switch]:
    """Return every switch so far, for a process that is starting."""
    return [
        Switch(number, what, value, on)
        for number, app in enumerate(root.apps())
        if app.composition is not None
        for (what, value), on in app.composition.enabled.switches.items()
    ]


def _apply(app: Registry, wanted: Switch) -> list[ListedKind]:
    """Enable or disable here; return the lists that changed."""
    composition = app.composed()
    with lock:
        before = {kind: composition.merged[kind].served for kind in LISTED}
        # Added at the end, because the last switch wins.
        composition.enabled.switches.pop((wanted.what, wanted.value), None)
        composition.enabled.switches[wanted.what, wanted.value] = wanted.on
        composition.change()
        return [kind for kind in LISTED if before[kind] != composition.merged[kind].served]


def _forward_switch(app: Registry, root: Registry, wanted: Switch) -> None:
    """Send a switch to the other processes that serve *app*, or an app that includes it."""
    number = next(number for number, each in enumerate(root.apps()) if each is app)
    root.changes.publish_switch(msgspec.structs.replace(wanted, app=number))
    if root.composition is not None:
        for each in root.composition.including():
            _forward_switch(app, each.app, wanted)


def select_tags(app: Registry, only: Collection[str], without: Collection[str]) -> None:
    """Serve only the entries with one of the tags in *only*, and none with a tag in *without*."""
    if only or without:
        composition = app.composed()
        enabled = composition.enabled
        enabled.only, enabled.without = frozenset(only), frozenset(without)
        composition.change()
