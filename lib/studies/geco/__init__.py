"""GECO: its sentences and their faults, its models' rows, its tables."""
