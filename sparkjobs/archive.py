"""This package, packed for executors that lack it."""

import zipfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import quorisk
from quorisk.kernels.protocols import registry

UNPACKED = "quorisk"
"""The folder that Spark unpacks the archive to, on Python's path there."""
_PACKAGES = ("kernels", "analysis", "sparkjobs", "plots", "say")
_ABOUT = "quorisk-0.dist-info"
"""Folder of the archive in which Python looks for the version and for entry points."""


def package_archive(folder: Path) -> Path:
    """Returns an archive of this package in `folder`, for executors that lack it: Spark unpacks it beside them.

    Other distributions' packages that have protocols come along, with the entry points by which they are found, and the
    version, which results name. Not a .zip or .egg on Python's path: compiled code is cached by the content of the
    source files, which have to be there.
    """
    root = Path(quorisk.__file__).parent
    folders = [(root / name, root.parent) for name in _PACKAGES]
    folders += [(other, other.parent) for other in registry.foreign_roots()]
    entry_points = "".join(f"{name} = {package}\n" for name, package in registry.foreign().items())
    path = folder / f"{UNPACKED}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
        archive.write(root / "__init__.py", f"{root.name}/__init__.py")
        for sources, place in folders:
            for file in sorted([*sources.rglob("*.py"), *sources.rglob("*.toml")]):
                archive.write(file, file.relative_to(place))
        archive.writestr(f"{_ABOUT}/METADATA", f"Metadata-Version: 2.1\nName: quorisk\nVersion: {_version()}\n")
        archive.writestr(f"{_ABOUT}/entry_points.txt", f"[{registry.GROUP}]\n{entry_points}")
    return path


def _version() -> str:
    """Returns the version of this package, as results name it."""
    try:
        return version("quorisk")
    except PackageNotFoundError:
        return "unknown"
