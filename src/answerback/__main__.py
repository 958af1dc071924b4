"""`python -m answerback` is the same as `answerback`."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
