"""The rewrites, as libcst codemods; each also works alone under `python -m libcst.tool codemod`.

`rebind` and `snapshot` find their nodes by span (`locate`), decide names (`names`) and
parentheses (`operators`), and change nothing else. `aliaslint.fix` runs them as one pass.
"""
