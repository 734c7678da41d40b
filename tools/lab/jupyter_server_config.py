"""The server of `make lab`, beside what the user has set at home."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT)]  # lab_contents.py, and lib

c = get_config()
c.ServerApp.root_dir = str(ROOT)
c.ServerApp.contents_manager_class = "lab_contents.Sources"
c.ServerApp.jpserver_extensions = {
    "jupyterlab_jupytext": False
}  # lab_contents.py does its work here
c.ContentsManager.checkpoints_class = "lab_contents.Checkpoints"
c.LabApp.default_url = "/lab/tree/notebooks/00_start_here.ipynb"
c.LabApp.extra_labextensions_path = [str(HERE / "extensions")]
# Which tabs are open belongs to this checkout, not to the user's other projects.
c.LabApp.workspaces_dir = str(ROOT / "outputs" / "lab" / "workspaces")
