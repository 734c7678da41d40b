"""Training: classifiers, language models, masked language models, several seeds side by side."""
