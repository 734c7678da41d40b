"""Which verbs should agree with "they", by tags alone."""

from __future__ import annotations

import pytest
from neutral_verbs import find_verbs


@pytest.mark.parametrize(
    ("tagged", "verbs"),
    [
        ("He/PRP soon/RB eats/VBZ and/CC then/RB sleeps/VBZ ./.", [2, 5]),
        ("He/PRP ,/, however/RB ,/, goes/VBZ ./.", [4]),
        ("He/PRP ,/, who/WP is/VBZ ill/JJ ,/, stays/VBZ ./.", [3, 6]),
        ("He/PRP says/VBZ that/IN she/PRP left/VBD ,/, and/CC weeps/VBZ ./.", [1, 7]),
        ("He/PRP waves/VBZ ,/, and/CC his/PRP$ wife/NN smiles/VBZ and/CC nods/VBZ ./.", [1]),
        ("He/PRP meets/VBZ the/DT man/NN who/WP limps/VBZ and/CC sings/VBZ ./.", [1]),
        ("Never/RB does/VBZ he/PRP know/VB ./.", [1]),
        (
            "He/PRP floats/VBZ until/IN the/DT ship/NN ,/, still/RB looking/VBG ,/, rescues/VBZ "
            "him/PRP ./.",
            [1],
        ),
        ("He/PRP waits/VBZ ,/, but/CC in/IN the/DT end/NN leaves/VBZ ./.", [1, 7]),
        ("He/PRP may/MD go/VB and/CC sings/VBZ ./.", [4]),
    ],
)
def test_verbs_of_they_are_found_from_tags(tagged: str, verbs: list[int]) -> None:
    words, tags = zip(*(part.rsplit("/", 1) for part in tagged.split()), strict=True)
    assert (
        find_verbs(["they" if w == "He" or w == "he" else w for w in words], words, tags) == verbs
    )
