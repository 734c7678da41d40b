"""What all figures share: the palette, the style, and the type of what a figure function returns.

The colours are seaborn's colour-blind palette and never the only sign: markers, line styles,
hatches and labels say the same. Letters have 9 points or more; how a figure is brought to the width
of print without losing them is in `core/pictures.py`.
"""

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from cycler import cycler

Plotted = tuple[plt.Figure, pd.DataFrame]  # the figure, and the table of what it shows

# loaded here: where a style is the first to load it, a notebook shows its first figure only
plt.switch_backend(plt.get_backend())
COLOURS = sns.color_palette("colorblind")
STYLE = {
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.labelsize": 10,
    "legend.fontsize": 9,
    "figure.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "x",
    "grid.color": "0.9",
    "axes.axisbelow": True,
    "axes.prop_cycle": cycler(color=COLOURS),
}
