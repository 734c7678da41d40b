"""Plumbing: errors, paths, files, parameters, stages, kept results, the runner.

What is said and where it lies: `errors`, `paths`, `files`, `contents`, `made_by`. What people hand
in: `named` (their functions), `arrays`. How a notebook is read, given its parameters and run:
`notebooks`, `parameters`, `stage`, `units`, `jobs` (units in several processes), `runner`, `warm`
(kernels that begin with the libraries loaded). What makes numbers the same: `seeds`, `arithmetic`.
Besides: `progress`, the words for tensor `axes`, the names that readers see for `codes`, data sets'
`cards`.
"""
