"""Print pytest's arguments for several processes, or nothing where pytest-xdist is absent."""

import importlib.util
import sys

workers = int(sys.argv[1])
if workers > 1 and importlib.util.find_spec("xdist"):
    print(f"-n {workers} --dist loadfile")
