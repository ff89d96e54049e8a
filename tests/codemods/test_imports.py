"""The import that a copy needs is added once, at the place where isort would have it."""

from __future__ import annotations

import pytest
from marked import edit

CASES = {
    "an empty head": (
        "o = «c.o»\n",
        "import mlx.core as mx\n\no = mx.array(c.o)\n",
    ),
    "a function first": (
        "def f(c):\n    return «c.o»\n",
        "import mlx.core as mx\n\n\ndef f(c):\n    return mx.array(c.o)\n",
    ),
    "a docstring": (
        '"""What."""\n\no = «c.o»\n',
        '"""What."""\n\nimport mlx.core as mx\n\no = mx.array(c.o)\n',
    ),
    "a docstring and a function": (
        '"""What."""\n\n\ndef f(c):\n    return «c.o»\n',
        '"""What."""\n\nimport mlx.core as mx\n\n\ndef f(c):\n    return mx.array(c.o)\n',
    ),
    "a docstring with another statement on its line": (
        '"""What."""; import os\n\no = «c.o»\n',
        '"""What."""; import os\n\nimport mlx.core as mx\n\no = mx.array(c.o)\n',
    ),
    "a docstring with an import from the future on its line": (
        '"""What."""; from __future__ import annotations\nimport os\n\no = «c.o»\n',
        '"""What."""; from __future__ import annotations\nimport os\n\n'
        "import mlx.core as mx\n\no = mx.array(c.o)\n",
    ),
    "an import from the future": (
        "from __future__ import annotations\n\no = «c.o»\n",
        "from __future__ import annotations\n\nimport mlx.core as mx\n\no = mx.array(c.o)\n",
    ),
    "docstring, future and standard library": (
        '"""What."""\n\nfrom __future__ import annotations\n\nimport os\n\no = «c.o»\n',
        '"""What."""\n\nfrom __future__ import annotations\n\nimport os\n\n'
        "import mlx.core as mx\n\no = mx.array(c.o)\n",
    ),
    "before its neighbour": (
        "import os\n\nimport mlx.nn as nn\nimport numpy as np\n\no = «c.o»\n",
        "import os\n\nimport mlx.core as mx\nimport mlx.nn as nn\nimport numpy as np\n\n"
        "o = mx.array(c.o)\n",
    ),
    "after what sorts before it": (
        "import click\nimport numpy\n\no = «c.o»\n",
        "import click\nimport mlx.core as mx\nimport numpy\n\no = mx.array(c.o)\n",
    ),
    "before imports from": (
        "import click\nfrom click import echo\n\no = «c.o»\n",
        "import click\nimport mlx.core as mx\nfrom click import echo\n\no = mx.array(c.o)\n",
    ),
    "before relative imports": (
        "from dataclasses import dataclass\n\nfrom .base import a\n\no = «c.o»\n",
        "from dataclasses import dataclass\n\nimport mlx.core as mx\n\nfrom .base import a\n\n"
        "o = mx.array(c.o)\n",
    ),
    "a comment above the neighbour stays with it": (
        "import os\n\n# Layers.\nimport mlx.nn as nn\n\no = «c.o»\n",
        "import os\n\nimport mlx.core as mx\n# Layers.\nimport mlx.nn as nn\n\no = mx.array(c.o)\n",
    ),
    "a licence stays first": (
        "#!/usr/bin/env python\n# A licence.\n\nimport mlx.nn as nn\n\no = «c.o»\n",
        "#!/usr/bin/env python\n# A licence.\n\nimport mlx.core as mx\nimport mlx.nn as nn\n\n"
        "o = mx.array(c.o)\n",
    ),
    "an import for the type checker alone does not count": (
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import mlx.core as mx\n\n"
        "o = «c.o»\n",
        "from typing import TYPE_CHECKING\n\nimport mlx.core as mx\n\nif TYPE_CHECKING:\n"
        "    import mlx.core as mx\n\no = mx.array(c.o)\n",
    ),
    "an import in another function does not count": (
        "def g():\n    import mlx.core as mx\n\n\ndef f(c):\n    return «c.o»\n",
        "import mlx.core as mx\n\n\ndef g():\n    import mlx.core as mx\n\n\n"
        "def f(c):\n    return mx.array(c.o)\n",
    ),
    "once for two copies": (
        "o = «c.o»\np = «d.o»\n",
        "import mlx.core as mx\n\no = mx.array(c.o)\np = mx.array(d.o)\n",
    ),
}


@pytest.mark.parametrize(("before", "after"), CASES.values(), ids=CASES)
def test_adding_the_import(before: str, after: str) -> None:
    assert edit(before, "snapshot").text == after


STANDARD = {
    "an empty head": ("o = «c.o»\n", "import copy\n\no = copy.copy(c.o)\n"),
    "a docstring and a function": (
        '"""What."""\n\n\ndef f(c):\n    return «c.o»\n',
        '"""What."""\n\nimport copy\n\n\ndef f(c):\n    return copy.copy(c.o)\n',
    ),
    "an import from the future": (
        "from __future__ import annotations\n\no = «c.o»\n",
        "from __future__ import annotations\n\nimport copy\n\no = copy.copy(c.o)\n",
    ),
    "before third parties": (
        '"""What."""\n\nimport mlx.nn as nn\n\no = «c.o»\n',
        '"""What."""\n\nimport copy\n\nimport mlx.nn as nn\n\no = copy.copy(c.o)\n',
    ),
    "between future and third parties": (
        "from __future__ import annotations\n\nimport mlx.nn as nn\n\no = «c.o»\n",
        "from __future__ import annotations\n\nimport copy\n\nimport mlx.nn as nn\n\n"
        "o = copy.copy(c.o)\n",
    ),
    "among its kind": (
        "import abc\nimport os\n\nimport mlx.nn as nn\n\no = «c.o»\n",
        "import abc\nimport copy\nimport os\n\nimport mlx.nn as nn\n\no = copy.copy(c.o)\n",
    ),
    "before imports from": (
        "from dataclasses import dataclass\n\nimport mlx.nn as nn\n\no = «c.o»\n",
        "import copy\nfrom dataclasses import dataclass\n\nimport mlx.nn as nn\n\n"
        "o = copy.copy(c.o)\n",
    ),
    "after what sorts before it": (
        "import abc\n\nimport mlx.nn as nn\n\no = «c.o»\n",
        "import abc\nimport copy\n\nimport mlx.nn as nn\n\no = copy.copy(c.o)\n",
    ),
    "before relative imports": (
        "from .base import a\n\no = «c.o»\n",
        "import copy\n\nfrom .base import a\n\no = copy.copy(c.o)\n",
    ),
}


@pytest.mark.parametrize(("before", "after"), STANDARD.values(), ids=STANDARD)
def test_adding_an_import_of_the_standard_library(before: str, after: str) -> None:
    assert edit(before, "snapshot", form="keep-any").text == after


def test_no_import_without_an_edit() -> None:
    assert edit("o = «c.o» + 0\n", "snapshot").text == "o = c.o + 0\n"


def test_a_second_edit_uses_the_import_of_the_first() -> None:
    once = edit("o = «c.o»\np = d.o\n", "snapshot").text
    twice = edit(once.replace("d.o", "«d.o»"), "snapshot").text

    assert twice == "import mlx.core as mx\n\no = mx.array(c.o)\np = mx.array(d.o)\n"
