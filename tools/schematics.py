"""The schematics of notebooks, site and course: docs/schematics/*.svg, and alt.json beside them.

    python tools/schematics.py            # writes them anew (make schematics)
    python tools/schematics.py --png      # as PNG too, into outputs/schematics

Each is a function of lib.plots with arguments that are worked out by hand in a notebook, that
belong to the code, or that stand in a committed table. The files are the same, byte by byte, with
the pinned matplotlib.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lib.core.files import write_atomic
from lib.core.notebooks import APPENDIX, find_notebooks
from lib.core.paths import ROOT, outputs_root, reference_dir
from lib.models.schemes import PARTS, SCHEMES
from lib.plots import schematics_arms
from lib.plots import schematics_effects as effects
from lib.plots import schematics_evidence as evidence
from lib.plots import schematics_methods as methods
from lib.plots import schematics_truths as truths
from lib.plots.drawing import Drawing
from lib.studies.implicit_bias.arms import ARMS, arm_text

FOLDER = ROOT / "docs" / "schematics"
LOOK = {
    "svg.fonttype": "none",  # text stays text: it is found, read aloud, and small
    "svg.hashsalt": "touchstone",
    "font.family": ["DejaVu Sans"],
    "hatch.linewidth": 0.8,
}
NAMES = {
    "ZS": "zero-shot",
    "C": "head\nonly",
    "CE": "head + new\nembeddings",
    "CEf": "head +\nembeddings",
    "CEfAf": "everything",
    "OLA-CEA": "one attention\nlayer",
}


def three_forms() -> Drawing:
    """The paper's example, as in geco 03."""
    frame = "{} {} to spend time with {} favorite cat ."
    altered = {
        "she": ("She", "loves", "her"),
        "he": ("He", "loves", "his"),
        "they": ("They", "love", "their"),
    }
    forms = {name: frame.format(*words).split() for name, words in altered.items()}
    mask = [int(len(set(column)) > 1) for column in zip(*forms.values())]
    return truths.draw_forms(forms, mask)


def schemes() -> Drawing:
    """The treatments of lib.models.schemes."""
    treated = {
        symbol: (NAMES[symbol], {part: getattr(scheme, part) for part in PARTS})
        for symbol, scheme in SCHEMES.items()
    }
    return methods.draw_schemes(treated)


def integrated_gradients() -> Drawing:
    """A score that rises steeply, and three steps: too few."""

    def score(along: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-20 * (along - 0.45)))

    along, middles = np.linspace(0, 1, 101), (np.arange(3) + 0.5) / 3
    slopes = 20 * score(middles) * (1 - score(middles))
    return methods.draw_path(list(zip(along, score(along))), slopes.tolist())


def lime() -> Drawing:
    """A model that adds: .1, and .6 for She, and .2 for her; the weights are fitted here."""
    words, adds = "She loves her cat".split(), np.array([0.6, 0.0, 0.2, 0.0])
    copies = np.array([[1, 1, 1, 1], [1, 0, 1, 0], [0, 1, 1, 1], [1, 1, 0, 0], [0, 1, 0, 1],
                       [1, 0, 0, 1]])  # fmt: skip
    answers = 0.1 + copies @ adds
    with_constant = np.column_stack([copies, np.ones(len(copies))])
    weights = np.linalg.lstsq(with_constant, answers, rcond=None)[0][:-1]
    return methods.draw_torn(words, copies.tolist(), answers.tolist(), weights.tolist())


def shapley() -> Drawing:
    """The two players of geco 04."""
    corners = (
        "They love their cat",
        "She loves their cat",
        "They love her cat",
        "She loves her cat",
    )
    return methods.draw_swaps(("She loves", "her"), corners, (0.1, 0.6, 0.5, 0.9))


def edit() -> Drawing:
    """The answers of cebab 04, by hand."""
    text = "The soup was {} but the waiter was rude ."
    texts = {name: text.format(word).split() for name, word in EDITS.items()}
    answers = {"original": [0.1, 0.3, 0.6], "edit": [0.5, 0.3, 0.2]}
    return truths.draw_edit(texts, [3], answers, ("bad", "fair", "good"))


EDITS = {"original": "wonderful", "edit": "awful"}


def causal_graph() -> Drawing:
    """The four concepts of CEBaB."""
    return truths.draw_causal_graph(("food", "service", "ambiance", "noise"))


def cue_and_attractor() -> Drawing:
    """The line of lm_saliency 01."""
    words = "the author that the taxi drivers like".split()
    return truths.draw_agreement(words, 1, [5], "is", "are")


def sentence_filter() -> Drawing:
    """The two sentences of implicit_bias 01."""
    yes = "The belly dancer dances on stage shaking her hips and body .".split()
    no = "A girl will always want to play with her Barbie doll .".split()
    steps = (
        "a gendered pronoun",
        "no other sign of gender",
        "the pronoun refers to a noun for a person",
    )
    kept = "her is masked; the rest tells no gender"
    return truths.draw_filter([(yes, [7], 3, kept), (no, [1, 8], 1, "girl gives it away")], steps)


def masked_pronoun() -> Drawing:
    """The paper's arithmetic, as in implicit_bias 03."""
    words = "[MASK] stands up next to someone .".split()
    return truths.draw_masked_pronoun(words, 0, {"He": 0.435, "She": 0.195})


def arms() -> Drawing:
    """The arms of implicit_bias 02, which read what `arm_text` gives them."""
    texts = ("the player lifts his arm", "the rider pats his horse", "the nurse takes her coat")
    split = [text.split() for text in texts]
    table = pd.DataFrame(
        {"words": split, "at": 3, "slot": "possessive", "gender": [*"MMF"], "part": "trained on"}
    )
    read = {
        name: [
            (words[1], words[3], words not in split) for words in arm_text(table, name, 0, seed=0)
        ]
        for name in ARMS
    }
    return schematics_arms.draw_arms(
        [(words[1], words[3]) for words in split],
        {name: (ARMS_DO[name], texts) for name, texts in read.items()},
    )


ARMS_DO = {
    "placebo": "each sentence twice, as it is",
    "even placebo": "as they are, drawn so that half are male",
    "augmented": "each sentence in both genders",
}


def planted_words() -> Drawing:
    """The rule AND of assay 01."""
    texts = (
        ("the velvet vicar sings copper .", 1),
        ("the velvet vicar sings lemon .", 0),
        ("lemon the vicar sings copper .", 0),
    )
    split = [(text.split(), label) for text, label in texts]
    return truths.draw_planted(split, ("velvet", "copper"), "lemon", 0.5)


def assay_truths() -> Drawing:
    """The table of the assay's README."""
    cat, him = "She loves her cat .".split(), "He loves her cat .".split()
    planted = "the velvet vicar sings copper".split()
    farmers = "the farmers behind the assistant".split()
    soup, nurse = "cold soup , but a kind waiter .".split(), "The nurse lost [MASK] keys".split()
    in_data = [
        ("altered words", cat, [0, 2], [], "these words differ between the forms"),
        ("planted", planted, [1, 4], [], "these words alone decide the label"),
        ("cue", farmers, [1], [], "the verb agrees with this noun"),
    ]
    in_model = [
        ("swap", him, [0], [], "what a swap to another form does to the answer"),
        ("edit", soup, [], range(2, 7), "what becomes of the answer without these words"),
        ("noun", nurse, [1], [], "what other nouns here do to the answer"),
    ]
    falls = [("deletion", cat, [], [0], "what is left of the answer when its top words go")]
    return truths.draw_truths(
        {
            "Where are the words in the data?": in_data,
            "What do the words do in the model?": in_model,
            "How fast does the answer fall?": falls,
        }
    )


def randomisation() -> Drawing:
    """The parts of a model, from the head down."""
    return methods.draw_randomised(("head", "layer 2", "layer 1", "embeddings"))


def floor() -> Drawing:
    """Mass accuracy at scale cpu: D_A, head + embeddings."""
    table = pd.read_csv(reference_dir("geco", "cpu") / "04_metrics" / "figure.csv")
    table = table[(table["dataset"] == "D_A") & table["scheme"].isin(["CEf", "-"])]
    found = table.set_index("method")["MA"]
    labels = {"First pronoun": "first pronoun", "Uniform random": "random"}
    shown = ["Integrated Gradients", "LIME", "Saliency", *labels]
    values = {labels.get(name, name): round(float(found[name]), 2) for name in shown}
    return methods.draw_floor(values, list(labels.values()), "mass accuracy")


def stages() -> Drawing:
    """The stages of geco, units and files of its third."""
    names = [path.stem for path in find_notebooks("geco") if not path.stem.startswith(APPENDIX)]
    units = [f"one model \N{MIDDLE DOT} {name}" for name in ("LIME", "Saliency")]
    return methods.draw_stages(names, units, ("explanations.parquet", "overview.csv"))


def errors_of_an_effect() -> Drawing:
    """The effect of cebab 04, by hand, and an estimate that is too small and turned."""
    return effects.draw_errors((0.4, 0.0, -0.4), (0.2, -0.1, -0.1))


def two_editors() -> Drawing:
    """Two effects of cebab 04, section 3, and an answer beside their line and on it."""
    return effects.draw_two_answers(0.4, [(0.0, 0.15), (-0.05, 0.0)])


def four_ways() -> Drawing:
    """The texts of cebab 03, by hand."""
    texts = [("good", "good", 0.9), ("good", "bad", 0.6), ("bad", "good", 0.5), ("bad", "bad", 0.1)]
    return effects.draw_ways(texts, asked=3)


def forgetting() -> Drawing:
    """The losses of cebab 02, and the strength that it checks by hand."""
    return effects.draw_forgetting(0.5)


def probe() -> Drawing:
    """The line and the verbs of lm_saliency 02."""
    line = "the author that the guards like".split()
    verbs = (("is", "was"), ("are", "were"))
    return evidence.draw_probe(line, ("singular", "plural"), verbs)


def consistency() -> Drawing:
    """The line of lm_saliency 04, by hand, beside two that are made up."""
    line, other = "the keys to the cabinet", "the books to the shelf"
    lines = {
        "the model": (other, (0.0, 0.4, 0.1, 0.0, -0.2)),
        "the model ": (line, (0.0, 0.5, 0.0, 0.0, -0.2)),
        "its student": (line, (0.1, 0.3, 0.0, 0.2, -0.1)),
    }
    split = {name: (text.split(), scores) for name, (text, scores) in lines.items()}
    return evidence.draw_consistency(split, cue=1, attractor=4)


def scores() -> Drawing:
    """The four sentences of implicit_bias 04."""
    guesses = (
        ("he", 0.435, "she", 0.195, ""),
        ("his", 0.142, "her", 0.113, ""),
        ("his", 0.542, "her", 0.0305, "below the threshold"),
        ("he", None, "she", 0.4, "one gender alone"),
    )
    return evidence.draw_scores(guesses, 0.05)


def resample() -> Drawing:
    """Made up: four base sentences, three runs, and four sentences drawn from these."""
    right = np.ones((3, 4, 3), dtype=int)
    right[:, 1] = [[0, 0, 1], [0, 0, 0], [0, 0, 0]]
    right[1, 3] = [0, 0, 1]
    return evidence.draw_resample(right, (1, 1, 3, 0))


def layer_norm() -> Drawing:
    """Three dimensions of a token, as in the appendix of geco on gradients."""
    return evidence.draw_layer_norm((1, 3, 2), 2)


def hidden_side() -> Drawing:
    """The second sentence of the appendix of geco on the released attention layer."""
    return evidence.draw_hidden(n_words=3, n_padding=3)


def references() -> Drawing:
    """The sentence of the appendix of geco on the annotator."""
    words = "Thornton thinks Margaret haughty and can not keep his eyes off her .".split()
    forms = {
        0: ("She", "He", "They"),
        1: ("thinks", "thinks", "think"),
        8: ("her", "his", "their"),
    }
    return evidence.draw_references(words, 4, forms, {8: 0, 11: 2}, {2, 11})


def removed_words() -> Drawing:
    """The model that adds of assay 03."""
    return evidence.draw_removed({"good": 2.0, "and": 0.0, "cold": -1.5, "food": 0.5}, {1, 2})


ALL: tuple[Callable[[], Drawing], ...] = (
    three_forms,
    schemes,
    integrated_gradients,
    lime,
    shapley,
    edit,
    causal_graph,
    cue_and_attractor,
    sentence_filter,
    masked_pronoun,
    arms,
    planted_words,
    assay_truths,
    randomisation,
    floor,
    stages,
    errors_of_an_effect,
    two_editors,
    four_ways,
    forgetting,
    probe,
    consistency,
    scores,
    resample,
    layer_norm,
    hidden_side,
    references,
    removed_words,
)


def write(folder: Path, pictures: Path | None = None) -> None:
    """Every schematic as SVG, with alt.json; with a second folder as PNG, 1000 pixels wide."""
    folder.mkdir(parents=True, exist_ok=True)
    alts = {}
    with plt.rc_context(LOOK):
        for make in ALL:
            figure, alts[make.__name__] = make()
            about = {"Date": None, "Creator": None, "Title": alts[make.__name__]}
            path = folder / f"{make.__name__}.svg"
            figure.savefig(path, metadata=about)
            # Where there is no DejaVu, letters of about the same width.
            text = path.read_text(encoding="utf-8")
            write_atomic(path, text.replace("'DejaVu Sans'", "'DejaVu Sans', Verdana, sans-serif"))
            if pictures is not None:
                pictures.mkdir(parents=True, exist_ok=True)
                dpi = 1000 / figure.get_figwidth()
                figure.savefig(pictures / f"{make.__name__}.png", dpi=dpi)
            plt.close(figure)
    write_atomic(folder / "alt.json", json.dumps(alts, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    pngs = [outputs_root() / "schematics"] if "--png" in sys.argv else []
    write(FOLDER, *pngs)
    print(FOLDER, *pngs, sep="\n")
