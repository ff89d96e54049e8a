"""Fixes real releases, and asks of each whether it still does what it did.

    python -m benchmarks.fix_releases FOLDER [--only NAME[==VERSION]]... [--json]

FOLDER holds the unpacked releases; pip downloads what is missing. A release is copied, with the
mlx-lm that it runs with beside it, fixed with the safe fixes, and checked again. Then the tree as
it was and the fixed one run in processes of their own: all changed modules are imported, the
caches for batches go through their public methods, and tiny models generate from three prompts
one by one (with `make_prompt_cache`) and in a batch (with `batch_generate`).

A release passes if nothing that can be fixed safely is left, what could be imported still can,
what black or ruff would leave alone still is, and it generates what it did; a batch that gave
something else than its prompts one by one may change, and only to that. A tiny model that cannot
be made shows nothing, so a release with one does not pass either. The exit status is 1 if one does
not pass.
"""
