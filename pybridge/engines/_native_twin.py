"""The native answer beside one of R's: what a guarded call is compared with."""

from __future__ import annotations

from typing import Any


def exact_answer(name: str, **arrays: Any) -> Any:
    """The native fit of the same arrays, by a word for the model.

    Parameters
    ----------
    name : {"area posterior", "taxonomy", "taxonomy at", "taxonomy prior"}
        The Bayesian area-level model by quadrature; the taxonomy model at its optimum, or at given
        variances; its default prior.
    **arrays
        What the native function takes.
    """
    # Upwards, since the native engines stand on the tables and not on R; when it is called only.
    if name == "area posterior":
        from pybridge.smoothing._bayes import fit_area_model_bayes

        return fit_area_model_bayes(**arrays)
    if name == "taxonomy prior":
        from pybridge.smoothing._taxonomy_prior import TaxonomyPrior

        return TaxonomyPrior.default(**arrays)
    from pybridge.smoothing._taxonomy_reml import fit_taxonomy_likelihood, taxonomy_at

    if name == "taxonomy at":
        return taxonomy_at(**arrays)
    return fit_taxonomy_likelihood(**arrays)
