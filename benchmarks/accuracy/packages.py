"""The packages of the labelled list: where their unpacked source lies, and what they import.

A folder per release, named like its distribution (`mlx_lm-0.31.3`), is looked up below a given
folder; `fetch` downloads what is missing with pip and unpacks it there. Nothing of a package is
installed or imported, and nothing of it is kept in this repository.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

LIST = Path(__file__).with_name("packages.csv")


@dataclass(frozen=True, slots=True)
class Package:
    """One release. `dependency` is the mlx-lm that stands beside it (`mlx-lm==0.31.3`), or ""."""

    name: str
    version: str
    import_name: str
    dependency: str

    @property
    def folder(self) -> str:
        return f"{self.name.replace('-', '_')}-{self.version}"


def read_packages(path: Path = LIST) -> list[Package]:
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Package(row["package"], row["version"], row["import_name"], row["dependency"])
            for row in csv.DictReader(file)
        ]


def unpack(archive: Path, target: Path) -> None:
    """Unpack a wheel, or a source archive without its top folder, below `target`."""
    if archive.suffix == ".whl":
        zipfile.ZipFile(archive).extractall(target)
        return
    with tarfile.open(archive) as bundle:
        for member in bundle.getmembers():
            inner = member.name.split("/", 1)
            if len(inner) == 2 and inner[1] and (member.isfile() or member.isdir()):
                member.name = inner[1]
                bundle.extract(member, target, filter="data")


def fetch(package: Package, root: Path) -> Path:
    """Return the folder of `package` below `root`; download and unpack it if it is not there.

    Raises subprocess.CalledProcessError if pip cannot download the release.
    """
    target = root / package.folder
    if (target / package.import_name).is_dir():
        return target
    store = root / "archives"
    wanted = f"{package.name}=={package.version}"
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(store)]
    subprocess.run([*pip, wanted], check=True)
    prefix = package.folder.lower()
    archive = next(path for path in sorted(store.iterdir()) if path.name.lower().startswith(prefix))
    unpack(archive, target)
    return target
