"""What one study alone needs: geco, lm_saliency, cebab, implicit_bias; none imports another."""
