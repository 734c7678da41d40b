"""Import this before numpy and torch: every processor then computes with the same instructions.

`lib.core.arithmetic` says which, and why.
"""

from .core.arithmetic import ask_for, in_force

ask_for(in_force())
