"""Random programs over caches, executed, against what the analysis says of them.

`python -m benchmarks.fuzz --count 20000 --seed 1 --jobs 2` prints the rates and each disagreement
as a minimal program. The parts:

- `tree`: a program as a tree of lines, each written twice: as it is, and with value semantics;
- `generator`, with `statements` and `expressions`: makes such trees from a source of choices
  (`random` or hypothesis);
- `arrays`: a small array in pure Python that behaves as `mx.array` does, and records its reads;
- `oracle`: runs both writings on the same coins and says which lines read a changed value;
- `observer`: the second oracle, which watches bindings inside one run;
- `compare`: holds the findings against that;
- `repair`: runs what `fix` makes of a program;
- `shrink`: makes a disagreeing program smaller.
"""
