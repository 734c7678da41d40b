// A double click on NN_name.py opens a notebook; any other .py opens in the editor, as ever.
// JupyterLab's own setting (`defaultViewers`) knows a file by its ending alone.
// Written by hand, without a build: JupyterLab asks a container for `init` and `get`.
"use strict";
const plugin = {
  id: "touchstone:sources",
  autoStart: true,
  activate: (app) => {
    app.docRegistry.addFileType(
      {
        name: "touchstone-source",
        displayName: "Notebook (source)",
        pattern: "^\\d\\d_.+\\.py$",
        extensions: [],
        mimeTypes: ["text/x-python"],
        contentType: "notebook",
        fileFormat: "json",
        iconClass: "jp-MaterialIcon jp-NotebookIcon",
      },
      ["Notebook"],
    );
  },
};
window._JUPYTERLAB = window._JUPYTERLAB || {};
window._JUPYTERLAB["touchstone"] = {
  init: () => undefined,
  get: () => Promise.resolve(() => ({ __esModule: true, default: plugin })),
};
