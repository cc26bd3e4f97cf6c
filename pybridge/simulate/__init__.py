"""Simulated populations and scores, for trying estimators and claims on known truths."""
