"""make lab for real: its contents manager, and JupyterLab in a browser, on a copy of this folder.

`TOUCHSTONE_PICTURES` may name a folder for what was seen.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest
from chromium import Browser
from nbformat.v4 import new_output

from lib.core.paths import ROOT

pytestmark = [pytest.mark.more, pytest.mark.slow]
pytest.importorskip("jupyterlab", reason="needs JupyterLab: make test-more")

NAME = "notebooks/geco/05_figures"
WIDGET = "jupyterapp.shell.currentWidget"
CELLS = f"{WIDGET}.content.model.cells"
DIRTY = f"{WIDGET}.context.model.dirty"


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the files of this one as they are now, and what geco leaves at `small`."""
    folder = tmp_path_factory.mktemp("clone")
    names = git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    who = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    git(folder, *who, "commit", "--quiet", "-m", "as it is")
    shutil.copytree(folder / "outputs/reference/geco/small", folder / "outputs/geco/small")
    return folder


@pytest.fixture
def changed(clone: Path) -> Iterator[Callable[[], list[str]]]:
    """What git calls changed, now; afterwards it is undone."""
    yield lambda: git(clone, "status", "--porcelain").split("\n")[:-1]
    git(clone, "checkout", "--quiet", "--", ".")
    git(clone, "clean", "--quiet", "--force")
    shutil.rmtree(clone / "outputs" / "lab", ignore_errors=True)


@pytest.fixture
def manager(clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The contents manager of the clone, as the server has it."""
    from lab_contents import Checkpoints, Sources

    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    return Sources(root_dir=str(clone), checkpoints_class=Checkpoints)


def get(manager, path: str, **asked) -> dict:
    return asyncio.run(manager.get(path, **asked))


def save(manager, path: str, notebook: nbformat.NotebookNode) -> dict:
    model = {"type": "notebook", "format": "json", "content": notebook}
    return asyncio.run(manager.save(model, path))


def test_source_and_copy_are_one_notebook(manager, changed: Callable) -> None:
    copy, source = get(manager, f"{NAME}.ipynb"), get(manager, f"{NAME}.py", type="notebook")
    assert copy["content"] == source["content"] and copy["last_modified"] == source["last_modified"]
    assert any(cell.get("outputs") for cell in copy["content"].cells)
    assert get(manager, f"{NAME}.py")["type"] == "file", "an editor still gets the text"
    assert changed() == []


def test_what_ran_goes_aside_and_an_edit_into_the_source(
    manager, clone: Path, changed: Callable
) -> None:
    notebook = get(manager, f"{NAME}.ipynb")["content"]
    ran = next(cell for cell in notebook.cells if cell.cell_type == "code")
    ran.outputs = [new_output("stream", text="from Lab")]
    before = get(manager, f"{NAME}.ipynb", content=False, require_hash=True)
    save(manager, f"{NAME}.ipynb", notebook)
    assert changed() == []
    after = get(manager, f"{NAME}.ipynb", content=False, require_hash=True)
    assert (after["hash"], after["last_modified"]) == (before["hash"], before["last_modified"])
    again = get(manager, f"{NAME}.py", type="notebook")["content"]
    assert again.cells[notebook.cells.index(ran)].outputs[0].text == "from Lab"
    ran.source += "\nprint(1)"
    save(manager, f"{NAME}.ipynb", notebook)
    assert changed() == [f" M {NAME}.py"]
    assert "\nprint(1)\n" in (clone / f"{NAME}.py").read_text()
    edited = get(manager, f"{NAME}.ipynb", content=False, require_hash=True)
    assert edited["hash"] != before["hash"], "so that Lab asks a second tab before it overwrites"


def test_newer_outputs_win(manager, clone: Path, changed: Callable) -> None:
    notebook = get(manager, f"{NAME}.ipynb")["content"]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    save(manager, f"{NAME}.ipynb", notebook)
    assert not any(cell.get("outputs") for cell in get(manager, f"{NAME}.ipynb")["content"].cells)
    later = time.time() + 5  # as `make execute` or a pull would leave it
    os.utime(clone / f"{NAME}.ipynb", (later, later))
    assert any(cell.get("outputs") for cell in get(manager, f"{NAME}.ipynb")["content"].cells)


def test_a_checkpoint_lies_aside_and_brings_a_source_back(
    manager, clone: Path, changed: Callable
) -> None:
    before = (clone / f"{NAME}.py").read_text()
    (kept,) = [asyncio.run(manager.create_checkpoint(f"{NAME}.ipynb"))]
    notebook = get(manager, f"{NAME}.ipynb")["content"]
    notebook.cells[0].source = "# Gone"
    save(manager, f"{NAME}.ipynb", notebook)
    assert changed() and not list((clone / "notebooks").rglob(".ipynb_checkpoints"))
    asyncio.run(manager.restore_checkpoint(kept["id"], f"{NAME}.ipynb"))
    assert (clone / f"{NAME}.py").read_text() == before and changed() == []


def test_what_a_run_left_for_good_is_not_overwritten(
    manager, clone: Path, changed: Callable
) -> None:
    name = "outputs/reference/geco/small/05_figures.ipynb"
    if not (clone / name).is_file():
        shutil.copy(clone / f"{NAME}.ipynb", clone / name)
    model = get(manager, name)
    assert not model["writable"], "Lab neither saves nor asks"
    with pytest.raises(Exception, match="save a copy elsewhere"):
        save(manager, name, model["content"])


@pytest.fixture
def lab(clone: Path, tmp_path: Path) -> Iterator[str]:
    """The address of `make lab` in the clone, on a port that was free."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    flags = f"--no-browser --port={port} --ServerApp.port_retries=0 --IdentityProvider.token= "
    flags += "--LabApp.expose_app_in_browser=True --allow-root"
    outside = {name: v for name, v in os.environ.items() if not name.startswith("TOUCHSTONE_")}
    here = outside | {"HOME": str(tmp_path), "PYTHONPATH": str(clone)}
    command = ["make", "-o", ".venv/lab", "lab", f"BIN={Path(sys.executable).parent}"]
    with (tmp_path / "lab.log").open("w") as log:
        server = subprocess.Popen(
            [*command, f"FLAGS={flags}"],
            cwd=clone,
            env=here,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(f"{address}/api", timeout=5).close()
                break
            except OSError:
                assert server.poll() is None, (tmp_path / "lab.log").read_text()
                time.sleep(0.2)
        yield address
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(timeout=30)


def see(browser: Browser, name: str) -> None:
    if folder := os.environ.get("TOUCHSTONE_PICTURES"):
        browser.picture(Path(folder) / f"{name}.png")


def command(browser: Browser, name: str) -> None:
    """Run a command of Lab, as its menu does."""
    browser.run(f"jupyterapp.commands.execute('{name}'), 1")


def open_notebook(browser: Browser, lab: str, path: str) -> None:
    browser.go(f"{lab}/lab/tree/{path}")
    browser.wait("globalThis.jupyterapp && !!document.querySelector('.jp-Notebook .jp-Cell')")
    browser.click("document.querySelector('.jp-Notebook .jp-Cell')")
    browser.wait(f"{WIDGET}?.context?.path === '{path}'")
    browser.wait(f"{WIDGET}.sessionContext.session?.kernel?.status === 'idle'")


def run_all(browser: Browser, seconds: float) -> list[str]:
    """Run every cell; returns the errors."""
    browser.run(f"{WIDGET}.sessionContext.session.kernel.requestExecute({{code: ''}}).done, 1")
    browser.run(
        "globalThis.ended = false; jupyterapp.commands.execute('notebook:run-all-cells')"
        ".finally(() => { globalThis.ended = true; }), 1"
    )
    browser.wait("globalThis.ended", seconds)
    told = "cell.outputs.toJSON().filter(o => o.ename).map(o => o.ename + ': ' + o.evalue)"
    errors = f"[...{CELLS}].flatMap(cell => cell.type === 'code' ? {told} : [])"
    return json.loads(browser.run(f"JSON.stringify({errors})"))


def test_a_reader_and_an_author_in_the_browser(
    clone: Path, lab: str, browser: Browser, changed: Callable
) -> None:
    page = urllib.request.urlopen(f"{lab}/", timeout=30)
    assert page.url.endswith("/lab/tree/notebooks/00_start_here.ipynb"), "the start page"
    top = json.load(urllib.request.urlopen(f"{lab}/api/contents/", timeout=30))
    assert {"README.md", "outputs", "params"} <= {entry["name"] for entry in top["content"]}

    open_notebook(browser, lab, "notebooks/00_start_here.ipynb")
    see(browser, "start")
    assert not browser.run(DIRTY), "opening changes nothing"
    assert run_all(browser, 120) == []
    command(browser, "docmanager:save")
    browser.wait(f"!{DIRTY}")
    assert (clone / "outputs/lab/00_start_here.ipynb").is_file() and changed() == []

    # A cell below the last one shows its bar while it works, and nothing when it is done.
    browser.run(f"{WIDGET}.content.activeCellIndex = {CELLS}.length - 1, 1")
    command(browser, "notebook:insert-cell-below")
    command(browser, "notebook:enter-edit-mode")
    browser.wait("!!document.activeElement.closest('.jp-Notebook .cm-editor')")
    browser.type(
        "import time\nfrom lib.core.progress import progress\n"
        "for step in progress(range(60), 'steps'): time.sleep(0.1)"
    )
    command(browser, "notebook:run-cell")
    bar = "document.querySelector('.jp-OutputArea progress')"
    assert browser.wait(f"{bar}?.max") == 60
    assert "of 60" in browser.run(f"{bar}.parentElement.textContent")
    browser.run(f"{bar}.scrollIntoView(false), 1")
    see(browser, "bar")
    browser.wait(f"!{bar}")
    see(browser, "bar_done")
    assert not browser.run("document.querySelector('[data-mime-type*=stderr]')")
    command(browser, "docmanager:save")
    browser.wait(f"!{DIRTY}")
    assert changed() == [" M notebooks/00_start_here.py"]
    lines = git(clone, "diff", "--numstat").split()[:2]
    assert lines == ["5", "0"], "a blank line, the mark of the cell and its three lines"

    # A figure of stage 5, from the tables of stage 4.
    open_notebook(browser, lab, f"{NAME}.ipynb")
    assert run_all(browser, 120) == []
    browser.run(f"{WIDGET}.content.activeCellIndex = 0; globalThis.scrollTo(0, 0), 1")
    index = browser.run(
        f"[...{CELLS}].findIndex(cell => cell.type === 'code' && cell.outputs.toJSON()"
        ".some(o => o.data?.['image/png']))"
    )
    browser.run(f"{WIDGET}.content.scrollToItem({index}, 'start'), 1")
    seen = "i.checkVisibility() && i.getBoundingClientRect().width > 300"  # in the tab in front
    figure = f"[...document.querySelectorAll('.jp-OutputArea img')].find(i => {seen})"
    browser.wait(f"!!{figure}")
    for _ in range(3):  # Lab lays out what comes into view, which moves it
        browser.run(f"{figure}.scrollIntoView({{block: 'center'}}), 1")
        time.sleep(0.5)
    see(browser, "figure")
    command(browser, "docmanager:save")
    browser.wait(f"!{DIRTY}")

    # A double click on the source of stage 4 opens a notebook; a parameter is changed there.
    item = "[...document.querySelectorAll('.jp-DirListing-item')]"
    browser.click(f"{item}.find(row => row.textContent.includes('04_metrics.py'))", times=2)
    browser.wait(f"{WIDGET}?.context?.path === 'notebooks/geco/04_metrics.py'")
    browser.wait(f"{WIDGET}?.content?.model?.cells?.length > 20")
    see(browser, "double_click")
    parameters = f"[...{CELLS}].find(cell => cell.metadata.tags?.includes('parameters'))"
    browser.run(
        f"(() => {{ const cell = {parameters}.sharedModel; "
        "cell.setSource(cell.getSource().replace('n_bootstrap = 1000', 'n_bootstrap = 500')); })()"
    )
    command(browser, "docmanager:save")
    browser.wait(f"!{DIRTY}")
    assert changed() == [" M notebooks/00_start_here.py", " M notebooks/geco/04_metrics.py"]
    assert git(clone, "diff", "--numstat", "notebooks/geco").split()[:2] == ["1", "1"]

    browser.wait(f"{WIDGET}.sessionContext.session?.kernel?.status === 'idle'")
    browser.run(f"{WIDGET}.content.activeCellIndex = [...{CELLS}].indexOf({parameters}), 1")
    command(browser, "notebook:run-cell")
    browser.wait(f"{parameters}.executionCount === 1")
    command(browser, "docmanager:save")
    browser.wait(f"!{DIRTY}")
    assert len(changed()) == 2

    # The source is edited elsewhere meanwhile: Lab asks, and nothing is lost.
    time.sleep(1)  # Lab asks about a file that is half a second newer than what it saved
    source = clone / "notebooks/geco/04_metrics.py"
    elsewhere = source.read_text().replace("alpha = 0.05", "alpha = 0.01")
    source.write_text(elsewhere)
    browser.run(f"{parameters}.sharedModel.setSource('seed = 1'), 1")
    command(browser, "docmanager:save")
    browser.wait("!!document.querySelector('.jp-Dialog')")
    see(browser, "asks")
    button = "[...document.querySelectorAll('.jp-Dialog button')]"
    browser.click(f"{button}.find(b => b.textContent.includes('Revert'))")
    browser.wait(f"{parameters}?.sharedModel.getSource().includes('alpha = 0.01')")
    assert source.read_text() == elsewhere

    # Any other .py opens in the editor.
    browser.run("jupyterapp.commands.execute('filebrowser:open-path', {path: 'lib/run.py'}), 1")
    browser.wait(f"{WIDGET}?.context?.path === 'lib/run.py' && !!{WIDGET}.content.editor")
