"""The comparer: answers of several producers side by side, with tolerances that have reasons.

A producer is whoever gives a number: an R package through the bridge, a plain R script, the native
engine, a reimplementation. The tolerances are named constants (:mod:`.tolerances`); the comparison
is in units of the standard error and of the log-likelihood (:mod:`.comparer`); what comes out is a
frozen table (:mod:`.agreement`) or, for one fit, a record with a sentence (:mod:`.fits`).
"""
