"""What `make lab` does with a numbered notebook: its cells live in the `.py`, its outputs aside.

`NN_name.py` and the `NN_name.ipynb` beside it open as one and the same notebook. Its cells are
those of the `.py`; its outputs are the newest there are, of the last run in Lab (`outputs/lab`,
which git ignores) or of the committed copy. Saving writes the `.py` if a cell was edited, and
`outputs/lab`. The committed `.ipynb` is never written: `make execute` does that.
"""

import hashlib
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nbformat
from jupyter_server.services.contents.filecheckpoints import AsyncGenericFileCheckpoints
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager
from lab_cells import with_outputs, write_cells
from tornado.web import HTTPError

from lib.core.files import write_atomic


class Sources(AsyncLargeFileManager):
    """A contents manager that keeps the sources of a repository, its `root_dir`."""

    async def get(
        self,
        path: str,
        content: bool = True,
        type: str | None = None,
        format: str | None = None,
        require_hash: bool = False,
    ) -> dict[str, Any]:
        """The model of a file; of a numbered notebook, its cells with the newest outputs."""
        source = self.source(path, type)
        if source is None:
            model: dict[str, Any] = await super().get(path, content, type, format, require_hash)
            model["writable"] = model["writable"] and not self._is_reference(path)
            return model
        path = path.strip("/")
        # Lab asks before it overwrites what changed meanwhile: by the hash, or by this time.
        changed = datetime.fromtimestamp(source.stat().st_mtime, UTC)
        model = self._base_model(path) | {"type": "notebook", "last_modified": changed}
        if content:
            notebook = with_outputs(source, self._outputs(source))
            self.mark_trusted_cells(notebook, path)
            model |= {"format": "json", "content": notebook}
        if require_hash:
            digest = hashlib.new(self.hash_algorithm, source.read_bytes()).hexdigest()
            model |= {"hash": digest, "hash_algorithm": self.hash_algorithm}
        self.emit(data={"action": "get", "path": path})
        return model

    async def save(self, model: dict[str, Any], path: str = "") -> dict[str, Any]:
        """Save a file; of a numbered notebook, its cells and its outputs, each in its place."""
        if self._is_reference(path):
            raise HTTPError(403, f"{path} is what a run left for good; save a copy elsewhere")
        source = self.source(path, model.get("type"))
        if source is None:
            saved: dict[str, Any] = await super().save(model, path)
            return saved
        self.run_pre_save_hooks(model=model, path=path)
        notebook = nbformat.from_dict(model["content"])
        is_trusted = self.notary.check_cells(notebook)
        write_cells(source, notebook)
        write_atomic(self._scratch(source), nbformat.writes(notebook) + "\n")
        if is_trusted:
            self.notary.sign(with_outputs(source, self._scratch(source)))
        self.emit(data={"action": "save", "path": path})
        return await self.get(path, content=False, type="notebook")

    def source(self, path: str, type: str | None) -> Path | None:
        """The `.py` of the notebook that a request is about; None for any other file."""
        file = Path(self._get_os_path(path.strip("/")))
        is_notebook = type == "notebook" or (type is None and file.suffix == ".ipynb")
        folders = file.relative_to(self.root_dir).parts[:-1]
        is_numbered = folders[:1] == ("notebooks",) and re.match(r"\d\d_", file.name)
        source = file.with_suffix(".py")
        is_there = file.is_file() and source.is_file()
        return source if is_notebook and is_numbered and is_there else None

    def _scratch(self, source: Path) -> Path:
        """Where the notebook goes as Lab left it, with its outputs."""
        inside = source.relative_to(Path(self.root_dir) / "notebooks").with_suffix(".ipynb")
        return Path(self.root_dir) / "outputs" / "lab" / inside

    def _outputs(self, source: Path) -> Path | None:
        """The newest notebook with outputs of a source."""
        copies = (self._scratch(source), source.with_suffix(".ipynb"))
        there = [copy for copy in copies if copy.is_file()]
        return max(there, key=lambda copy: copy.stat().st_mtime, default=None)

    def _is_reference(self, path: str) -> bool:
        """Whether it is a committed notebook that a run left, which *Run all* must not change."""
        return path.strip("/").startswith("outputs/reference/") and path.endswith(".ipynb")


class Checkpoints(AsyncGenericFileCheckpoints):
    """What *Revert to checkpoint* goes back to, in `outputs/lab` and not beside the sources."""

    def checkpoint_path(self, checkpoint_id: str, path: str) -> str:
        """Where the checkpoint of a file lies."""
        place = Path(self.root_dir) / "outputs" / "lab" / "checkpoints" / path.strip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        return str(place)
