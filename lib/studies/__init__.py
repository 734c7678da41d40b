"""One room a study: what that study alone needs."""
