"""Text models with one face: whatever their kind, they run from word embeddings to class scores."""
