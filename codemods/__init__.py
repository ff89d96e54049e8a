"""The rewrites, as libcst codemods; each also works alone:

    python -m libcst.tool codemod -x aliaslint.codemods.rebind.RebindCommand FILE
    python -m libcst.tool codemod -x aliaslint.codemods.snapshot.SnapshotCommand FILE

(`-x`: the command is named by its module). Without `--span` the analysis of each module for
itself says what to rewrite; `aliaslint fix` analyses all files together, which finds more.

A codemod finds its nodes by span (`locate`) and decides which names stand for `mx.array` at a
place (`names`, `imports`), where parentheses are needed (`operators`), what has to be evaluated
once (`purity`) and where a line that grew is broken (`layout`, `tokens`). Nothing else changes.
"""
