"""What an executed notebook keeps, and what differs between two equal runs."""

from pathlib import Path

from lib.core.notebooks import read_notebook, strip_volatile

SOURCE = """# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Title

# %% tags=["parameters"]
seed = 0  # a seed

# %%
print(seed)

# %%
print(seed)
"""


def test_volatile_metadata_goes_and_the_rest_stays(tmp_path: Path) -> None:
    (tmp_path / "01_a.py").write_text(SOURCE)
    notebook = read_notebook(tmp_path / "01_a.py")
    notebook.metadata["papermill"] = {"start_time": "now"}
    notebook.metadata["language_info"] = {"name": "python", "version": "3.11.7"}
    notebook.cells[1].metadata["execution"] = {"iopub.execute_input": "now"}
    notebook.cells[1]["execution_count"] = 1
    strip_volatile(notebook)
    assert notebook.metadata == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    assert [dict(cell.metadata) for cell in notebook.cells] == [
        {},
        {"tags": ["parameters"]},
        {},
        {},
    ]
    assert notebook.cells[1].execution_count == 1
