"""Which entries an app serves: those that are enabled, and that the command line's tags select."""

from __future__ import annotations

from _thread import RLock
from collections.abc import Collection, Sequence
from typing import Literal

import msgspec

from ..tools.tool import Tool
from .declarations import Change, ListedKind, Registry

LISTED: tuple[ListedKind, ...] = ("tools", "resources", "prompts")
# One lock for all apps, because changing an app also changes the apps that include it.
lock = RLock()


class Switch(msgspec.Struct, frozen=True, array_like=True):
    """Something was enabled or disabled in one of the combined apps."""

    app: int
    """The position of its app in `Registry.apps()`."""
    what: Literal["name", "tag"]
    value: str
    on: bool


class Enabled:
    """The names and tags that were enabled or disabled in one app."""

    def __init__(self) -> None:
        self.switches: dict[tuple[Literal["name", "tag"], str], bool] = {}
        """The last one that applies to an entry wins."""
        self.only: frozenset[str] = frozenset()
        self.without: frozenset[str] = frozenset()
        """The command line's tags; an entry they exclude cannot be enabled."""

    def serves(self, name: str, entry: Tool) -> bool:
        """Return whether an entry is served under this name."""
        tags = entry.settings.tags
        # Tags select tools, and a widget follows its tools.
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
    """Enable or disable by name or by tag, here and in the other processes that serve it."""
    if (name is None) == (tag is None):
        raise TypeError("give a name or a tag: app.disable('add') or app.disable(tag='write')")
    if name is not None:
        known = app.composed().merged
        if not any(name in known[kind].entries for kind in LISTED):
            raise ValueError(f"{app.name!r} has no tool, prompt or resource {name!r}")
    what: Literal["name", "tag"] = "tag" if name is None else "name"
    value = name or tag or ""
    # The other processes first: they may be out of reach, and then nothing changes.
    _forward_switch(app, app, what, value, on)
    for kind in _apply(app, what, value, on=on):
        app.changes.publish(Change(kind))


def apply_switch(root: Registry, received: Switch) -> None:
    """Apply what another process enabled or disabled; it sends the notifications itself."""
    apps = list(root.apps())
    if received.app < len(apps):
        _apply(apps[received.app], received.what, received.value, on=received.on)


def apply_switches(root: Registry, received: Sequence[Switch]) -> None:
    """Make these the last switches of their apps, in this order."""
    current = switches_of(root)
    for number in {each.app for each in received}:
        wanted = [each for each in received if each.app == number]
        if [each for each in current if each.app == number][-len(wanted) :] != wanted:
            for each in wanted:
                apply_switch(root, each)


def switches_of(root: Registry) -> list[Switch]:
    """Return every switch so far, for a starting process."""
    return [
        Switch(number, what, value, on)
        for number, app in enumerate(root.apps())
        if app.composition is not None
        for (what, value), on in app.composition.enabled.switches.items()
    ]


def _apply(
    app: Registry, what: Literal["name", "tag"], value: str, *, on: bool
) -> list[ListedKind]:
    """Enable or disable here; return the lists that changed."""
    composition = app.composed()
    with lock:
        before = {kind: composition.merged[kind].served for kind in LISTED}
        composition.enabled.switches.pop((what, value), None)
        composition.enabled.switches[what, value] = on
        composition.change(lambda: None)
        return [kind for kind in LISTED if before[kind] != composition.merged[kind].served]


def _forward_switch(
    app: Registry, root: Registry, what: Literal["name", "tag"], value: str, on: bool
) -> None:
    """Send a switch of *app* to the other processes that serve it, or an app that includes it."""
    number = next(number for number, each in enumerate(root.apps()) if each is app)
    root.changes.publish_switch(Switch(number, what, value, on))
    if root.composition is not None:
        for each in root.composition.including():
            _forward_switch(app, each.app, what, value, on)


def select_tags(app: Registry, only: Collection[str], without: Collection[str]) -> None:
    """Serve only the entries with one of the tags *only*, and none with one of *without*."""
    if only or without:
        composition = app.composed()
        enabled = composition.enabled
        enabled.only, enabled.without = frozenset(only), frozenset(without)
        composition.change(lambda: None)
