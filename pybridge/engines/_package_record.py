"""What the fits of hbsae, metafor and rjags under their own names share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pybridge.engines._sae_record import SaeRecord

if TYPE_CHECKING:
    from pybridge.crosscheck.fits import FitCrosscheck


@dataclass(frozen=True, eq=False, repr=False)
class PackageFit(SaeRecord):
    """A fit of a model that other engines may have too; fields as in ``SaeRecord``."""

    def crosscheck(self) -> FitCrosscheck:
        """The same model by its package, with the same options and seed, and natively.

        Returns
        -------
        FitCrosscheck
            Its ``sentence`` says whether they agree, where they part, and which is nearer to the
            optimum.

        Raises
        ------
        InputError
            For a model that no other engine has; ``no_seed`` where R drew without a seed.
        """
        from pybridge.crosscheck.packages import crosscheck_package

        self._need_seed()
        return crosscheck_package(self)
