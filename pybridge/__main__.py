"""``python -m pybridge``: the command line."""

import sys

from pybridge.cli import main

if __name__ == "__main__":
    sys.exit(main())
