"""What readers see in place of codes: columns, methods, constructions, settings of the sweep."""

import re
from collections import Counter
from collections.abc import Sequence

from ...core.codes import SIDES as SIDES

METHODS = {"V": "plain gradient (V)", "SG": "SmoothGrad (SG)", "IG": "Integrated Gradients (IG)"}
NORMS = {"V+VN": "plain gradient, vector norm (V+VN)", "SG+VN": "SmoothGrad, vector norm (SG+VN)"}
COLUMNS = METHODS | {
    "dataset": "set",
    "scheme": "architecture",
    "size": "model",
    "kind": "probe",
    "majority": "larger class",
    "balanced": "balanced",
    "says_1": "says plural or female",
    "auc": "AUC",
    "auc_low": "AUC, low end",
    "random": "random scores",
    "nearest": "nearest noun",
    "all": "lines that pass",
    "low": "from",
    "high": "to",
    "input_consistency": "input consistency",
    "p_holm": "p (Holm)",
    "is_ranked": "ranked",
    "ours": "this run",
    "from_parts": "all, from its parts",
    "allowed": "allowed gap",
}
IN_THE_PAPER = {  # licensed sets, by the one that takes their place here
    "EWT": "PTB",
    "OntoGUM": "CoNLL",
    "Held-out number": "PTB",
    "Held-out gender": "CoNLL",
}
WHOLE = " whole"  # ends the name of a set whose lines keep the words that a cut takes from them
BALANCED = " balanced"  # ends the name of a set that a second gender probe is asked about
GRAMMAR = "+grammar"  # ends the name of a family that also reads the grammar's sentences
MODELS = {"full": "full model", "student": "student"}
PROBES = {"matched": "number, matched", "number_matched": "number, matched"}  # others say it
GROUPINGS = {"paper": "the paper", "released": "the authors' code"}
UNEQUAL = {"slots": "slot by slot", "skip": "left out"}
SECTIONS = {  # of Syneval: what stands before the verb, and what the first noun names
    "obj_rel_across_anim": "after an object relative clause, person first",
    "obj_rel_across_inanim": "after an object relative clause, thing first",
    "obj_rel_no_comp_across_anim": "after an object relative clause without that, person first",
    "obj_rel_no_comp_across_inanim": "after an object relative clause without that, thing first",
    "obj_rel_no_comp_within_anim": "within an object relative clause without that, person first",
    "obj_rel_no_comp_within_inanim": "within an object relative clause without that, thing first",
    "obj_rel_within_anim": "within an object relative clause, person first",
    "obj_rel_within_inanim": "within an object relative clause, thing first",
    "prep_anim": "after a prepositional phrase, person first",
    "prep_inanim": "after a prepositional phrase, thing first",
    "sent_comp": "in a sentential complement",
    "subj_rel": "after a subject relative clause",
}
CONSTRUCTIONS = {  # of the grammar
    "plain": "after its subject",
    "prep": "after a prepositional phrase",
    "subj_rel": "after a subject relative clause",
    "obj_rel": "after an object relative clause",
    "obj_rel_no_comp": "after an object relative clause without that",
    "sent_comp": "in a sentential complement",
    "two_preps": "after two prepositional phrases",
    "prep_rel": "after a prepositional phrase with a relative clause",
}
_CONFIGURATION = re.compile(r"\d+l_(\d+)w_(\d+)e_(\d+)h")  # 8l_384w_192e_4h


def columns(*names: str, **others: str) -> dict[str, str]:
    """What a reader sees above some columns, in their order; `others` have a name of their own.

    >>> columns("dataset", "lines", "low", passed="passes")
    {'dataset': 'set', 'lines': 'lines', 'low': 'from', 'passed': 'passes'}
    """
    return {name: COLUMNS.get(name, name) for name in names} | others


def names_of_settings(sizes: Sequence[str]) -> dict[str, str]:
    """What tells each configuration apart, in words: the whole of the most common setting.

    >>> names_of_settings(["2l_64w_32e_4h", "4l_64w_32e_4h", "4l_64w_32e_1h"])["4l_64w_32e_1h"]
    'heads 1'
    """
    parts = {}
    for size in sizes:
        if not (match := _CONFIGURATION.fullmatch(size)):
            raise ValueError(f"{size!r} is no configuration such as 8l_384w_192e_4h")
        parts[size] = dict(zip(("width", "embedding", "heads"), match.groups()))
    if not parts:  # a run without a sweep
        return {}
    common = {
        key: Counter(part[key] for part in parts.values()).most_common(1)[0][0]
        for key in ("width", "embedding", "heads")
    }
    all_of_it = ", ".join(f"{key} {value}" for key, value in common.items())
    return {
        size: ", ".join(f"{k} {v}" for k, v in part.items() if v != common[k]) or all_of_it
        for size, part in parts.items()
    }
