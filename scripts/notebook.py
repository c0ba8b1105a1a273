"""Runs docs/notebook.ipynb again and keeps what its cells show: after a change of the API, or of a number.

python scripts/notebook.py
"""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parent.parent
NOTEBOOK = ROOT / "docs" / "notebook.ipynb"


def main() -> None:
    """Executes the notebook in place, in the repository's folder."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(ROOT)}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when it ran
    nbformat.write(notebook, NOTEBOOK)


if __name__ == "__main__":
    main()
