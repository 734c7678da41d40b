"""Intervals, tests, and the verdicts on claims."""
