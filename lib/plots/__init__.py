"""Figures and coloured words."""
