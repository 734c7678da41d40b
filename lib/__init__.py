"""Touchstone: shared rooms for language, models, attribution, metrics; and one room a study."""

import warnings

# tqdm, which transformers, captum, papermill and pooch bring along, warns that there are no widgets
# for its bars; a saved notebook holds no stderr.
warnings.filterwarnings("ignore", message="IProgress not found")

__version__ = "0.2.0"  # the one place that says it
