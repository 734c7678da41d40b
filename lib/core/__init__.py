"""Plumbing, which imports nothing else of lib and is imported by its modules, `lib.core.stage`.

What is said and where it lies: `errors`, `paths`, `files`. How a notebook is read, given its
parameters and run: `notebooks`, `parameters`, `stage`, `units`, `runner`. What makes numbers the
same: `seeds`, `arithmetic`. Besides: `progress`, the words for tensor `axes`, data sets' `cards`.
"""
