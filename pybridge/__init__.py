"""pybridge."""
from pybridge._version import __version__
