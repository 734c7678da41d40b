"""Text models with one face: whatever their kind, they run from word embeddings to class scores."""

import warnings

# tqdm, which transformers brings along, warns that there are no widgets; saved
# notebooks hold no stderr
warnings.filterwarnings("ignore", message="IProgress not found")
