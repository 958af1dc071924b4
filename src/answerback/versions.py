"""What each version of MCP can say: the one table that replies are projected by."""

from __future__ import annotations

import msgspec


class Version(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    audio: bool = True
    links: bool = True
    """`resource_link` blocks."""
    structured: bool = True
    """`structuredContent` and `outputSchema`."""
    annotation_dates: bool = True
    """`lastModified` among a block's annotations."""
    block_meta: bool = True
    """`_meta` on a block; every version has it on the result."""
    result_type: bool = False
    """`resultType` on every result; the modern era."""


V2025_03_26 = Version(
    name="2025-03-26", links=False, structured=False, annotation_dates=False, block_meta=False
)
V2024_11_05 = msgspec.structs.replace(V2025_03_26, name="2024-11-05", audio=False)
V2025_06_18 = Version(name="2025-06-18")
V2025_11_25 = Version(name="2025-11-25")
V2026_07_28 = Version(name="2026-07-28", result_type=True)

VERSIONS = {
    version.name: version
    for version in (V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28)
}
LATEST_LEGACY = V2025_11_25
