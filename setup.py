"""Only what pyproject.toml cannot say: found packages plus one that lies elsewhere in the tree."""

from setuptools import find_packages, setup

setup(packages=[*find_packages(include=["aliaslint", "aliaslint.*"]), "aliaslint.codemods"])
