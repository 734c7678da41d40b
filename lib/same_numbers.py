"""Import this before numpy and torch: every processor then computes with the same instructions (lib.arithmetic says which, and why)."""

from lib.arithmetic import ask_for, in_force

ask_for(in_force())
