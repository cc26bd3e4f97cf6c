"""Smoothing of direct estimates by area-level models."""
