"""A record as CEBaB publishes it, made up."""

from __future__ import annotations

from lib.studies.cebab.reviews import ASPECTS


def record(text_id: str = "7_000000", **changes: object) -> dict:
    """An original, or an edit of its food, with what is to be different."""
    original, edit = text_id.split("_")
    is_original = edit == "000000"
    about = {
        "id": text_id,
        "original_id": original,
        "edit_id": edit,
        "is_original": is_original,
        "edit_goal": None if is_original else "Negative",
        "edit_type": None if is_original else "food",
        "edit_worker": None if is_original else "w1",
        "description": "Fine soup.",
        "review_majority": "4",
        "review_label_distribution": {"4": 3, "5": 2},
        "review_workers": {},
        "opentable_metadata": {},
    }
    for aspect in ASPECTS:
        votes = {"Positive": 4, "unknown": 1} if aspect == "food" else ""
        about |= {
            f"{aspect}_aspect_majority": "Positive" if votes else "",
            f"{aspect}_aspect_label_distribution": votes,
            f"{aspect}_aspect_validation_workers": "",
        }
    return about | changes
