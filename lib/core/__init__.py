"""Plumbing: errors, paths, seeds, files, parameters, notebooks, stages, units. Imports nothing else of lib."""
