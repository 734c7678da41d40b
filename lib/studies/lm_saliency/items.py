"""What stage 04 needs of explanations, line by line: numbers, no scores of words.

A unit of these is small enough to be published, so a run goes on where the weights are gone.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from ...core.errors import TouchstoneError
from ...core.seeds import seed_for
from ...metrics.plausibility import input_consistency, model_consistency, plausibility
from .lines import span_tokens
from .naming import BALANCED, WHOLE
from .released import template_groups
from .text import CLASSES, task_of_set

SHUFFLED = "IG shuffled"  # a control: IG's scores, in another order in each line
_MODEL = ["dataset", "architecture", "size", "training"]


def check_saliency(saliency: pd.DataFrame) -> None:
    """Refuse scores that are no numbers, and a line whose clean probability moves with the method.

    Raises:
        TouchstoneError: naming set, model and line.
    """
    finite = np.array([np.isfinite(scores).all() for scores in saliency["class_1"]])
    spread = saliency.groupby([*_MODEL, "line"])["probability"].agg(np.ptp)
    if not finite.all() or spread.max() > 1e-5:
        wrong = tuple(saliency.loc[~finite, [*_MODEL, "line"]].head(1).to_numpy().ravel())
        raise TouchstoneError(
            f"scores or probabilities of {wrong or spread.idxmax()} are not the same numbers under "
            "every method; delete this unit of stage 03 and run it again"
        )


def with_shuffled(saliency: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The explanations, and beside those by IG of a full model the same in another order.

    Both classes of a line get the same order.
    """
    some = saliency[(saliency["method"] == "IG") & (saliency["size"] == "full")].copy()
    if some.empty:
        return saliency
    name = some[_MODEL].iloc[0].astype(str)
    rng = np.random.default_rng(seed_for("shuffled", *name, seed))
    orders = [rng.permutation(len(scores)) for scores in some["class_1"]]
    for side in ("class_0", "class_1"):
        some[side] = [
            np.asarray(scores)[order].tolist()
            for scores, order in zip(some[side], orders, strict=True)
        ]
    return pd.concat([saliency, some.assign(method=SHUFFLED)], ignore_index=True)


def line_items(saliency: pd.DataFrame, sets: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Whether each explanation passes, in a row a line.

    Returns:
        line, probability (of class 1), and for each method a digit: 1 where the line passes, 2
        where it would pass with the other answer and the same scores, 3 for both.
    """
    other = saliency.assign(probability=1 - saliency["probability"])
    passed, turned = (
        plausibility(table, sets)["passed"].to_numpy(int) for table in (saliency, other)
    )
    wide = saliency.assign(code=passed + 2 * turned).pivot(
        index="line", columns="method", values="code"
    )
    probability = saliency.drop_duplicates("line").set_index("line")["probability"]
    methods = list(saliency["method"].unique())
    return wide[methods].assign(probability=probability)[["probability", *methods]].reset_index()


def pair_items(
    saliency: pd.DataFrame, sets: Mapping[str, pd.DataFrame], grouping: str
) -> pd.DataFrame:
    """How alike the explanations of two lines of one template are, in a row a pair.

    Args:
        saliency: explanations of one set in one model.
        sets: the lines.
        grouping: what a template is, see `template_groups`.

    Returns:
        line (the later one), same_length, and for each method verum and malum; pairs of unequal
        length are compared by slots.
    """
    name = saliency["dataset"].iloc[0]
    templates = {name: template_groups(sets[name], grouping)}
    return _wide(input_consistency(saliency, sets, "slots", templates), ["line", "same_length"])


def agreement_items(
    full: pd.DataFrame, student: pd.DataFrame, sets: Mapping[str, pd.DataFrame]
) -> pd.DataFrame:
    """How alike a line's explanations in a model and in its student are, in a row a line.

    Returns:
        line, and for each method verum and malum.
    """
    both = pd.concat([full, student], ignore_index=True)
    return _wide(model_consistency(both, sets), ["line"])


def narrow(table: pd.DataFrame, decimals: int) -> pd.DataFrame:
    """The table with its numbers to so many decimals, in half the bytes."""
    wide = table.select_dtypes("float64").columns
    return table.round(dict.fromkeys(wide, decimals)).astype(dict.fromkeys(wide, np.float32))


def long_items(wide: pd.DataFrame, about: Mapping[str, object]) -> pd.DataFrame:
    """A table of `pair_items` or `agreement_items` with a row for each method.

    Args:
        wide: the table.
        about: columns that are the same in every row.

    Returns:
        The columns of `about`, method, the table's own names, verum, malum.
    """
    methods = [name.removeprefix("verum ") for name in wide if name.startswith("verum ")]
    names = [name for name in wide if not name.startswith(("verum ", "malum "))]
    parts = [
        wide[names].assign(
            **about, method=method, verum=wide[f"verum {method}"], malum=wide[f"malum {method}"]
        )
        for method in methods
    ]
    table = pd.concat(parts, ignore_index=True)
    return table[[*about, "method", *names, "verum", "malum"]]


def long_lines(wide: pd.DataFrame, about: Mapping[str, object]) -> pd.DataFrame:
    """A table of `line_items` with a row for each method.

    Returns:
        The columns of `about`, method, line, probability, passed, passed_other.
    """
    methods = [name for name in wide if name not in ("line", "probability")]
    parts = [
        wide[["line", "probability"]].assign(
            **about,
            method=method,
            passed=wide[method] % 2 == 1,
            passed_other=wide[method] >= 2,
        )
        for method in methods
    ]
    table = pd.concat(parts, ignore_index=True)
    return table[[*about, "method", "line", "probability", "passed", "passed_other"]]


def beside_cut(whole: pd.DataFrame, cut: pd.DataFrame) -> pd.DataFrame:
    """How lines fare that were cut, and the same lines whole, in a row a model, method and line.

    Args:
        whole: rows of `long_lines` of sets whose name ends with "whole".
        cut: those of all sets.

    Returns:
        The rows of `whole`, under the name of the set that was cut, with passed_cut and difference
        (passed minus passed_cut) and changed (its size); NaN where nothing is left of a line.
    """
    by = [*_MODEL, "method", "line"]
    whole = whole.assign(dataset=whole["dataset"].str.removesuffix(WHOLE))
    of_cut = cut[[*by, "passed"]].rename(columns={"passed": "passed_cut"})
    both = whole.merge(of_cut, on=by, how="left", validate="one_to_one")
    both["passed_cut"] = both["passed_cut"].astype(float)
    difference = both["passed"] - both["passed_cut"]
    return both.assign(difference=difference, changed=difference.abs())


def beside_unbalanced(table: pd.DataFrame) -> pd.DataFrame:
    """How lines fare by the two gender probes of the check, in a row a model, method and line.

    Args:
        table: rows of `long_lines`; those of the probe from balanced examples have sets whose name
            ends with "balanced".

    Returns:
        The rows of that probe, under the name of the set, with she (whether it says *she*), and of
        the probe from the examples as they are she_unbalanced and passed_unbalanced; difference
        (passed minus passed_unbalanced) and changed (its size).
    """
    by = [*_MODEL, "method", "line"]
    table = table.assign(she=table["probability"] > 0.5)
    is_even = table["dataset"].str.endswith(BALANCED)
    even = table[is_even].assign(dataset=table["dataset"].str.removesuffix(BALANCED))
    before = table.loc[~is_even, [*by, "passed", "she"]]
    both = even.merge(before, on=by, suffixes=("", "_unbalanced"), validate="one_to_one")
    difference = both["passed"].astype(float) - both["passed_unbalanced"].astype(float)
    return both.assign(difference=difference, changed=difference.abs())


def with_all_models(table: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """The rows of a table, and those of some methods once more under the architecture "all", where
    each model counts as a training: a mean over these is one over models.

    >>> table = pd.DataFrame({"architecture": ["LSTM", "QRNN"], "training": 9, "method": "V"})
    >>> with_all_models(table, ["V"])[["architecture", "training"]].values.tolist()
    [['LSTM', 9], ['QRNN', 9], ['all', 0], ['all', 1]]
    """
    model = table.groupby(["architecture", "training"], sort=False).ngroup()
    every = table.assign(architecture="all", training=model)
    return pd.concat([table, every[every["method"].isin(methods)]], ignore_index=True)


def with_lines(table: pd.DataFrame, sets: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The rows of a table (dataset, line) with tag and cluster of their lines; the order stays."""
    known = pd.concat(
        [
            rows[["tag", "cluster"]].assign(dataset=name).rename_axis("line").reset_index()
            for name, rows in sets.items()
        ]
    )
    return table.merge(known, on=["dataset", "line"], how="left", validate="many_to_one")


def by_depth(
    passes: pd.DataFrame,
    configurations: pd.DataFrame,
    is_learnt: Mapping[tuple[str, str, str], bool],
) -> pd.DataFrame:
    """The sweep's lines by depth, for sets that all models of a depth have learnt.

    A setting (width, embedding, heads) is trained once; the settings of a depth are its trainings,
    so that the spread between them belongs to an interval over depths.

    Args:
        passes: dataset, scheme, size, method and what a row a line and method holds.
        configurations: the sweep's models: size (8l_384w_192e_4h), layers.
        is_learnt: by dataset, scheme and size.

    Returns:
        The rows of `passes` with layers, and seed: the setting's number, the same at every depth.
    """
    rows = passes.merge(configurations[["size", "layers"]], on="size")
    keys = rows[["dataset", "scheme", "size"]].itertuples(index=False, name=None)
    rows = rows.assign(learnt=[is_learnt[key] for key in keys])
    of_depth = rows.groupby(["dataset", "layers"])["learnt"]
    settings = rows["size"].astype(str).str.replace(r"^[^_]*_", "", regex=True)
    rows = rows.assign(seed=pd.factorize(settings)[0])
    return rows[of_depth.transform("all").astype(bool)].drop(columns="learnt")


def lines_to_show(lines: Mapping[str, pd.DataFrame], names: Sequence[str]) -> dict[str, list[int]]:
    """Two lines of middle length of each set, one of each class, chosen by their words alone.

    Where a set has one class (Winobias), one with the cue first and one with it second.
    """
    chosen = {}
    for name in names:
        rows = lines[name]
        length = rows["prefix"].map(len)
        far = (length - length.median()).abs()
        first = rows["cues"].map(min) < rows["attractors"].map(min)
        side = rows["tag"] if rows["tag"].nunique() > 1 else first
        chosen[name] = [int(line) for line in far.groupby(side).idxmin()]
    return chosen


def words_to_show(
    places: Sequence[tuple[str, str, str, str, int]],
    shown: pd.DataFrame,
    passed: pd.DataFrame,
    sets: Mapping[str, pd.DataFrame],
) -> pd.DataFrame:
    """Lines word by word, with the scores for the answer of the model.

    Args:
        places: dataset, architecture, size, method and line of each explanation.
        shown: what stage 03 hands on of scores: these columns, training (one of each model),
            probability, class_0, class_1.
        passed: these columns, training and passed.
        sets: the lines of each set.
    """
    by_line = ["dataset", "architecture", "size", "method", "line"]
    own = passed.merge(shown[[*by_line, "training"]])  # of the training that is shown
    verdicts = own.set_index(by_line)["passed"].sort_index()
    shown = shown.set_index(by_line).sort_index()
    rows = []
    for place in places:
        (dataset, scheme, size, method, at), one = place, shown.loc[place]
        line, classes = sets[dataset].loc[at], CLASSES[task_of_set(dataset)]
        roles = {i: role for role in ("cue", "attractor") for i in span_tokens(line[f"{role}s"])}
        says = int(one["probability"] > 0.5)
        about = {
            "dataset": dataset,
            "line": at + 1,
            "scheme": scheme,
            "size": size,
            "method": method,
            "expected": classes[line["tag"]],
            "says": classes[says],
            "passed": verdicts.loc[place],
        }
        rows += [
            about | {"place": i, "word": word, "role": roles.get(i, ""), "score": score}
            for i, (word, score) in enumerate(
                zip(line["prefix"], one[f"class_{says}"], strict=True)
            )
        ]
    return pd.DataFrame(rows)


def _wide(table: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """A row for each value of `by`, with verum and malum of each method."""
    methods = list(table["method"].unique())
    wide = table.pivot(index=list(by), columns="method", values=["verum", "malum"])
    order = table[list(by)].drop_duplicates()
    keys = pd.MultiIndex.from_frame(order) if len(by) > 1 else pd.Index(order[by[0]])
    names = [(side, method) for method in methods for side in ("verum", "malum")]
    wide = wide.reindex(keys)[names]
    wide.columns = [f"{side} {method}" for side, method in names]
    return wide.reset_index()
