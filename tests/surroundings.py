"""Runs the tests where a newcomer may stand; `make surroundings` shows a table, ONLY=NAME runs one.

The commit that is checked out is cloned and set up, once in a folder that only its user may enter
and once for an ordinary user: nobody, if root runs it. TESTS names other tests than those of the
table, to try it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
NOBODY = 65534
PARTS = ("tests/state", "tests/docs", "tests/cli")
NEWER = ("", ".11", ".12", ".13", ".14")
IS_ROOT = os.geteuid() == 0
LOOPS = 4


class Skip(Exception):
    """Why a surrounding cannot be made here."""


class Failed(Exception):
    """What failed before the tests."""


class Clone:
    """A clone that was set up, and how its user runs commands there."""

    def __init__(self, place: Path, umask: int, python: str = "", **user: Any) -> None:
        if place.exists():
            raise Failed("make setup, as before")
        self.folder, self.home = place / "clone", place / "home"
        self._options = {"umask": umask, **user}
        folders = os.environ["PATH"].split(os.pathsep)
        # root's PATH may have folders that an ordinary user cannot enter.
        self._path = os.pathsep.join(each for each in folders if _can_enter(each, user))
        self.home.mkdir(parents=True)
        # Without hard links: the clone's files may get another owner.
        clone = ["git", "clone", "-q", "--no-hardlinks", str(ROOT), str(self.folder)]
        subprocess.run(clone, check=True, umask=umask)
        for path in (place, *place.rglob("*")) if user else ():
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        place.chmod(0o777 & ~umask)
        if self.run("make", "setup", **({"PYTHON": python} if python else {})):
            raise Failed("make setup")

    def run(self, *command: str, **variables: str) -> int:
        """Run a command in the clone, and return its exit status."""
        _say(f"$ {shlex.join(command)}")
        left_out = {"MAKEFLAGS", "MAKELEVEL", "PYTHONPATH", "TMPDIR", "VIRTUAL_ENV"}
        own = {name: value for name, value in os.environ.items() if name not in left_out}
        own |= {"HOME": str(self.home), "PATH": self._path, **variables}
        done = subprocess.run(command, cwd=self.folder, env=own, check=False, **self._options)
        return done.returncode

    def test(self, *parts: str, before: tuple[str, ...] = (), **variables: str) -> int:
        """Run these tests, or all of them."""
        chosen = os.environ.get("TESTS", "").split() or parts
        words = [".venv/bin/python", "-m", "pytest", "-n", os.environ.get("WORKERS", "4")]
        return self.run(*before, *words, "--dist", "worksteal", "-q", *chosen, **variables)


class Clones:
    """The two clones, each made when it is needed."""

    def __init__(self, place: Path) -> None:
        self._place = place

    @cached_property
    def private(self) -> Clone:
        """A clone that only its user may enter."""
        return Clone(self._place / "private", 0o077)

    @cached_property
    def ordinary(self) -> Clone:
        """The clone of a user who is not root."""
        place = self._place / "an ordinary usér"
        if not IS_ROOT:
            return Clone(place, 0o022)
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        return Clone(place, 0o022, _python_for(user), **user)


def _can_enter(folder: str, user: dict[str, Any]) -> bool:
    return subprocess.run(["test", "-x", folder], check=False, cwd="/", **user).returncode == 0


def _python_for(user: dict[str, Any]) -> str:
    """A Python that the user can run: root's own may lie in root's home."""
    names = [os.environ.get("PYTHON", "python3"), "python3"]
    names += [f"/usr{local}/bin/python3{minor}" for local in ("", "/local") for minor in NEWER]
    probe = "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))"
    for path in filter(None, map(shutil.which, names)):
        with suppress(OSError):
            if not subprocess.run([path, "-c", probe], check=False, cwd="/", **user).returncode:
                return path
    raise Skip("the user nobody can run no Python 3.11; install python3 and python3-venv")


def root_in_a_private_folder(clones: Clones) -> int:
    if not IS_ROOT:
        raise Skip("only root's programs run as another user; run it as root")
    return clones.private.test()


def user_in_an_odd_path(clones: Clones) -> int:
    return clones.ordinary.test()


def read_only_home(clones: Clones) -> int:
    clone = clones.private
    if not IS_ROOT:
        clone.home.chmod(0o555)
        return clone.test(*PARTS)
    # Modes do not stop root.
    mount = f'mount -t tmpfs -o ro tmpfs {shlex.quote(str(clone.home))} && exec "$@"'
    return clone.test(*PARTS, before=_namespace(["unshare", "--mount"], mount))


def no_ipv6(clones: Clones) -> int:
    enter = ["unshare", "--net"]
    if not IS_ROOT:
        enter += ["--user", "--map-current-user", "--keep-caps"]
    off = "for each in all default lo; do echo 1 > /proc/sys/net/ipv6/conf/$each/disable_ipv6; done"
    prefix = _namespace(enter, f'{off} && ip link set lo up && exec "$@"')
    return clones.private.test(*PARTS, before=prefix)


def _namespace(enter: list[str], script: str) -> tuple[str, ...]:
    """The words before a command that run it in a namespace which *script* prepares."""
    words = (*enter, "sh", "-c", f"set -e; {script}", "sh")
    tried = subprocess.run([*words, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        raise Skip(f"{' '.join(enter)} failed: {tried.stderr.strip()}")
    return words


def no_bytecode(clones: Clones) -> int:
    return clones.private.test(*PARTS, PYTHONDONTWRITEBYTECODE="1")


def taken_ports(clones: Clones) -> int:
    clone = clones.private
    with ExitStack() as stack:
        for port in (8000, 8080):
            # Somebody else may have it already.
            with suppress(OSError):
                stack.enter_context(socket.create_server(("", port)))
        return clone.test(*PARTS)


def busy_machine(clones: Clones) -> int:
    clone = clones.private
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(LOOPS)]
    try:
        return clone.test(*PARTS)
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


SURROUNDINGS: dict[str, tuple[str, Callable[[Clones], int]]] = {
    "root": ("all tests as root in a folder of mode 0700", root_in_a_private_folder),
    "user": ('all tests as an ordinary user, in a path with a space and "é"', user_in_an_odd_path),
    "home": ("state, docs and cli with a read-only home", read_only_home),
    "ipv6": ("state, docs and cli without IPv6", no_ipv6),
    "bytecode": ("state, docs and cli with PYTHONDONTWRITEBYTECODE=1", no_bytecode),
    "ports": ("state, docs and cli while ports 8000 and 8080 are taken", taken_ports),
    "busy": (f"state, docs and cli beside {LOOPS} busy loops", busy_machine),
}


class Row(NamedTuple):
    name: str
    said: str
    result: str
    seconds: float


def _run(name: str, clones: Clones) -> Row:
    said, surrounding = SURROUNDINGS[name]
    _say(f"\n== {name}: {said}")
    began = monotonic()
    try:
        status = surrounding(clones)
        result = f"failed with the status {status}" if status else "passed"
    except Failed as what:
        result = f"failed: {what}"
    except Skip as why:
        result = f"not run: {why}"
    return Row(name, said, result, monotonic() - began)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(only: list[str]) -> int:
    if unknown := sorted({*only} - {*SURROUNDINGS}):
        _say(f"there is no surrounding {unknown[0]!r}; choose from {', '.join(SURROUNDINGS)}")
        return 2
    # Not TMPDIR, which may be closed to the ordinary user.
    where = next(filter(os.path.isdir, ("/var/tmp", "/tmp")))
    with tempfile.TemporaryDirectory(prefix="answerback-surroundings-", dir=where) as name:
        os.chmod(name, 0o711)
        clones = Clones(Path(name))
        rows = [_run(each, clones) for each in only or SURROUNDINGS]
    only_these = os.environ.get("TESTS")
    _say(f"\nonly {only_these}, not what each row says:" if only_these else "")
    for row in rows:
        _say(f"{row.name:9} {row.seconds:6.0f} s  {row.result}: {row.said}")
    return int(any(row.result.startswith("failed") for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
