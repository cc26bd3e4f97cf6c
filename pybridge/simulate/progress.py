"""A progress line on standard error, for people who wait; silent where nobody does."""

from __future__ import annotations

import sys
import time
from typing import IO, Any

_WIDTH = 28


class Progress:
    """One line that is written over as work gets done.

    It writes to ``stream`` (standard error at the time it is made) and only where that is a
    terminal: pipes, files and notebooks' logs stay empty.

    Parameters
    ----------
    total, done : int
        Steps in all, and those done before.
    label : str
    enabled : bool
    """

    def __init__(
        self,
        total: int,
        *,
        done: int = 0,
        label: str = "repetitions",
        enabled: bool = True,
        stream: IO[str] | None = None,
    ) -> None:
        self.total, self.done, self.label = total, done, label
        self.start, self.begun = done, time.monotonic()
        self.stream: Any = sys.stderr if stream is None else stream
        terminal = getattr(self.stream, "isatty", None)
        self.shown = bool(enabled and terminal is not None and terminal())
        self._draw()

    def advance(self, steps: int = 1) -> None:
        """So many more are done."""
        self.done += steps
        self._draw()

    def close(self) -> None:
        """Leave the line as it is and go to the next."""
        if self.shown:
            self.stream.write("\n")
            self.stream.flush()
            self.shown = False

    def line(self, elapsed: float) -> str:
        """The line after so many seconds."""
        share = self.done / self.total if self.total else 1.0
        full = int(share * _WIDTH)
        text = f"[{'#' * full}{'.' * (_WIDTH - full)}] {self.done}/{self.total} {self.label}"
        fresh = self.done - self.start
        if fresh and self.done < self.total:
            text += f", about {_duration(elapsed / fresh * (self.total - self.done))} left"
        elif fresh:
            text += f" in {_duration(elapsed)}"
        return text

    def _draw(self) -> None:
        if self.shown:
            # Erase to the end of the line: the last text may have been longer.
            self.stream.write("\r" + self.line(time.monotonic() - self.begun) + "\x1b[K")
            self.stream.flush()


def _duration(seconds: float) -> str:
    whole = int(round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes}:{rest:02d} min" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d} h"
