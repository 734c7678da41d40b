"""Implicit gender bias: its sentences, its texts, WEAT."""
