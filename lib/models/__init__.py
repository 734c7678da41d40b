"""Networks with one interface: from word embeddings to scores, whatever their kind.

`text_model` says what a classifier of sentences must offer, and how sentences become batches; `hf`,
`ola`, `bilstm`, `zero_shot`, `masked_gender` and `probe` are the kinds. `language_model`, `hf_lm`
and `masked_lm` predict words. `weights` and `load` say where parameters come from, `schemes` which
of them learn, `shortcuts` what need not be computed.
"""

import warnings

# tqdm, which transformers brings along, warns that there are no widgets; saved notebooks hold no
# stderr
warnings.filterwarnings("ignore", message="IProgress not found")
