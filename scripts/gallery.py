"""The README's gallery: figures of real sweeps, and an ablation, as SVG in docs/gallery/.

python scripts/gallery.py                  # as the experiment files say: minutes
python scripts/gallery.py --runs 20000     # a draft
"""

import shutil
import subprocess
import sys
from pathlib import Path

import typer

ROOT = Path(__file__).parent.parent
GALLERY = ROOT / "docs" / "gallery"
SWEEPS = {
    "pulsar": ("incidents",),
    "demo": ("loss_data_loss", "heat_map_data_loss", "outcomes"),
    "kafka_variants": ("heat_map_data_loss", "cost_data_loss", "distribution"),
}
"""Experiment files, and which of their figures are shown."""
ABLATION, ABLATION_RUNS = "configs/defect1.toml", 1_000_000


def quorisk(*arguments: str) -> None:
    done = subprocess.run([Path(sys.executable).with_name("quorisk"), *arguments], cwd=ROOT, check=False)
    if done.returncode:  # it has said why
        sys.exit(done.returncode)


def main(runs: int = 0) -> None:
    """Sweeps what is missing in results/ and draws."""
    GALLERY.mkdir(parents=True, exist_ok=True)
    for name, figures in SWEEPS.items():
        out = f"results/{name}_{runs}" if runs else f"results/{name}"
        changed = ["--set", f"run.runs={runs}"] if runs else []
        quorisk("run", f"configs/{name}.toml", "--out", out, "--resume", *changed)
        for figure in figures:
            shutil.copyfile(ROOT / out / "figures" / f"{figure}.svg", GALLERY / f"{name}_{figure}.svg")
    picture = GALLERY / "ablation.svg"
    quorisk("compare", ABLATION, "--ablation", "--set", f"run.runs={runs or ABLATION_RUNS}", "--plot", str(picture))
    for path in sorted(GALLERY.glob("*.svg")):
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    typer.run(main)
