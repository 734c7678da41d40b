"""CEBaB: reviews, generated worlds, and estimators of concept effects."""
