"""What one study alone needs: geco, lm_saliency, cebab, implicit_bias, assay.

None imports another.
"""
