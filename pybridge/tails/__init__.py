"""Tails of score distributions: thresholds, generalised Pareto fits, goodness of fit, planning."""
