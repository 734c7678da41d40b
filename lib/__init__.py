"""Shared machinery of Touchstone: text and data, models, attribution, metrics, statistics, figures."""
