"""Saliency of language models: agreement lines, their sources and extraction."""
