"""What `make` puts into .venv/etc/ipython: kernels say errors only.

Otherwise each one warns at its start that it talks over local TCP.
"""

get_config().IPKernelApp.log_level = "ERROR"
