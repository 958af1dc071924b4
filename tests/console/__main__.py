"""`python -m tests.console` makes the pictures of the console and of the terminal in docs/."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.conftest import ROOT
from tests.protocol.official_tools import MODULES
from tests.widgets.browser_driver import Browser, chromium, chromium_folder

from .screens import IMAGES, SCREENS, Screen, apps
from .terminals import TERMINALS, svg_of

FONTS = """<?xml version="1.0"?>
<fontconfig>
  <dir>{chromium}/fonts</dir>
  <dir>{mono}</dir>
  <cachedir>{cache}</cachedir>
  {aliases}
</fontconfig>
"""
ALIAS = """<alias binding="same">
    <family>{name}</family><prefer><family>{font}</family></prefer>
  </alias>"""
FAMILIES = {
    "monospace": "DejaVu Sans Mono",
    "sans-serif": "Open Sans",
    "system-ui": "Open Sans",
}


def main() -> int:
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        fonts = write_fonts(Path(folder))
        with chromium(scale=2, fonts=fonts) as browser, apps() as urls:
            for screen in SCREENS:
                for colours in ("light", "dark"):
                    take(browser, screen, urls[screen.app], colours)
    for terminal in TERMINALS:
        for colours in ("light", "dark"):
            path = IMAGES / f"{terminal.name}-{colours}.svg"
            path.write_text(svg_of(terminal, colours))
            report(path)
    return 0


def write_fonts(folder: Path) -> Path:
    """Write the settings of Chromium's fonts: its own one, and one of fixed width."""
    aliases = "\n  ".join(ALIAS.format(name=name, font=font) for name, font in FAMILIES.items())
    mono = MODULES / "dejavu-fonts-ttf" / "ttf"
    settings = folder / "fonts.conf"
    settings.write_text(
        FONTS.format(chromium=chromium_folder(), mono=mono, cache=folder, aliases=aliases)
    )
    return settings


def take(browser: Browser, screen: Screen, url: str, colours: str) -> None:
    # A page must be open, and it must not be the one that the screen shows.
    browser.open("about:blank")
    browser.scheme(colours)
    shown = screen.show(browser, url)
    missing = [text for text in screen.texts if text not in shown]
    assert not missing, f"{screen.name} does not show {missing}"
    path = IMAGES / f"{screen.name}-{colours}.png"
    browser.screenshot("", path)
    report(path)


def report(path: Path) -> None:
    sys.stdout.write(f"{path.relative_to(ROOT)}  {path.stat().st_size:,} bytes\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
