"""The .py beside each notebook is its source text, not a module of tests: only the executed .ipynb is collected."""

collect_ignore_glob = ["*.py", "*/*.py"]
