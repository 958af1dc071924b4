"""The MCP versions and their features; messages are limited to those features."""

from __future__ import annotations

import msgspec


class Version(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A version; it equals its name, such as "2025-11-25", and prints as that name."""

    name: str
    audio: bool = True
    links: bool = True
    """Has `resource_link` blocks."""
    structured: bool = True
    """Has `structuredContent` and `outputSchema`."""
    annotation_dates: bool = True
    """Has `lastModified` in a block's annotations."""
    block_meta: bool = True
    """Has `_meta` on content blocks."""
    tool_annotations: bool = True
    progress_messages: bool = True
    completions: bool = True
    """Has the `completions` capability; the method is older."""
    titles: bool = True
    """Has `title` and `_meta` on tools, resources, prompts and the server itself."""
    icons: bool = True
    """Has `icons`, and the server's `description` and `websiteUrl`."""
    elicitation: bool = True
    choices: bool = True
    """Has forms in which the user can choose several items from a list."""
    batches: bool = False
    tasks: bool = False
    """Has tasks in its core; later versions have them as an extension."""
    stateless: bool = False
    """Is stateless: no sessions and no requests from the server; every result has `resultType`,
    and lists have cache hints."""

    def __str__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return self.name == (other.name if isinstance(other, Version) else other)

    def __hash__(self) -> int:
        return hash(self.name)


# Each older version is the next newer one minus the features that it added.
V2026_07_28 = Version(name="2026-07-28", stateless=True)
V2025_11_25 = Version(name="2025-11-25", tasks=True)
V2025_06_18 = Version(name="2025-06-18", icons=False, choices=False)
V2025_03_26 = msgspec.structs.replace(
    V2025_06_18,
    name="2025-03-26",
    links=False,
    structured=False,
    annotation_dates=False,
    block_meta=False,
    titles=False,
    elicitation=False,
    batches=True,
)
V2024_11_05 = msgspec.structs.replace(
    V2025_03_26,
    name="2024-11-05",
    audio=False,
    tool_annotations=False,
    progress_messages=False,
    completions=False,
    batches=False,
)

VERSIONS = {
    version.name: version
    for version in (V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28)
}
STATEFUL = {name: version for name, version in VERSIONS.items() if not version.stateless}
STATELESS = {name: version for name, version in VERSIONS.items() if version.stateless}
LATEST_STATEFUL = V2025_11_25
ASSUMED_STATEFUL = V2025_03_26
"""The version assumed for a client that names none, or an unknown one."""
