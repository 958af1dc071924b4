"""What the program says about itself."""

from __future__ import annotations

from .program import COMMANDS, WITHOUT_TARGET, Program

_EXAMPLES = {
    "serve": "--port 8000",
    "call": "add x=7 y=3",
    "openapi": "> openapi.json",
}

_START = """\
To start, write this to calculator.py:

    from answerback import App

    app = App("calculator")

    @app.tool
    def add(x: int, y: int) -> int:
        \"\"\"Add two numbers.\"\"\"
        return x + y

    if __name__ == "__main__":
        app.run()

Then `python calculator.py list` does the same as `answerback list calculator.py`.
"""


def help_for(program: Program) -> str:
    head = "answerback: one typed Python function, one checked reply, every wire"
    if program.app is not None:
        head = f"{program.app.name} {program.app.version}: {_count(len(program.app.tools))}"
    usage = f"usage: {program.line('COMMAND', 'TARGET')} [options]"
    more = f"`{program.line('COMMAND')} --help` says more about a command."
    parts = [head, usage, _commands(program), more]
    return "\n\n".join(parts if program.app else [*parts, _START.rstrip()]) + "\n"


def version_of(program: Program) -> str:
    from .. import __version__

    if program.app is None:
        return f"answerback {__version__}\n"
    return f"{program.app.name} {program.app.version} (answerback {__version__})\n"


def unknown(program: Program, word: str) -> str:
    """What to say about a command that there is not."""
    import difflib

    near = difflib.get_close_matches(word, COMMANDS, n=2)
    if near:
        hint = f"did you mean {' or '.join(near)}?"
    elif program.app is None and (".py" in word or ":" in word):
        hint = f"the command comes first: {program.line('list', word)}"
    else:
        hint = f"there are {', '.join(COMMANDS)}"
    return f"error: unknown command {word!r}; {hint}"


def _commands(program: Program) -> str:
    lines = ["commands:"]
    for command, summary in COMMANDS.items():
        if program.app and command in WITHOUT_TARGET:
            continue
        words = "NAME x=7" if program.app and command == "call" else _EXAMPLES.get(command, "")
        target = WITHOUT_TARGET.get(command, "calculator.py")
        example = f"{program.line(command, target)} {words}".rstrip()
        lines += [f"  {command:8} {summary}", f"  {'':8}   {example}"]
    return "\n".join(lines)


def _count(tools: int) -> str:
    return "1 tool" if tools == 1 else f"{tools} tools"
