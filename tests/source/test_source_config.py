"""`[tool.aliaslint]`: where it is found, what it may hold, what is said about mistakes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aliaslint.source.config import Config, ConfigError, find


def configure(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "pyproject.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    config = find(tmp_path)
    assert config == Config(tmp_path)
    assert (config.exposed_attributes, config.select, config.unsafe_fixes) == (
        ("offset",),
        None,
        False,
    )


def test_reads_every_key(tmp_path: Path) -> None:
    (tmp_path / "fork").mkdir()
    path = configure(
        tmp_path,
        """
[tool.aliaslint]
select = ["AL0", "AL1"]
ignore = ["AL002"]
extend-select = ["AL102"]
exclude = ["gen"]
extend-exclude = ["third_party"]
exposed-attributes = ["offset", "lengths"]
shared-attributes = ["lengths"]
cache-protocol = ["step"]
python = ".venv"
mlx-lm = "fork"
unsafe-fixes = true

[tool.aliaslint.per-file-ignores]
"tests/**" = ["AL1"]
""",
    )
    assert find(tmp_path) == Config(
        root=tmp_path,
        source=path,
        select=("AL0", "AL1"),
        ignore=("AL002",),
        extend_select=("AL102",),
        exclude=("gen",),
        extend_exclude=("third_party",),
        per_file_ignores={"tests/**": ("AL1",)},
        exposed_attributes=("offset", "lengths"),
        shared_attributes=("lengths",),
        cache_protocol=("step",),
        python=tmp_path / ".venv",
        mlx_lm=str(tmp_path / "fork"),
        unsafe_fixes=True,
    )


def test_a_version_stays_a_version(tmp_path: Path) -> None:
    configure(tmp_path, '[tool.aliaslint]\nmlx-lm = "0.31.3"\n')
    assert find(tmp_path).mlx_lm == "0.31.3"


def test_the_nearest_file_with_the_table_counts(tmp_path: Path) -> None:
    configure(tmp_path, "[tool.aliaslint]\nunsafe-fixes = true\n")
    configure(tmp_path / "inner", "[tool.other]\n")
    path = tmp_path / "inner" / "deep" / "a.py"
    path.parent.mkdir()
    path.touch()
    config = find(path)
    assert (config.root, config.unsafe_fixes) == (tmp_path, True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            '[tool.aliaslint]\nselct = ["AL1"]\n',
            ":2: unknown key 'selct' in [tool.aliaslint]; did you mean 'select'?",
            id="misspelt key",
        ),
        pytest.param(
            "[tool.aliaslint]\nunsafe_fixes = true\n",
            ":2: unknown key 'unsafe_fixes' in [tool.aliaslint]; did you mean 'unsafe-fixes'?",
            id="underscore for a hyphen",
        ),
        pytest.param(
            '\n[tool.aliaslint]\nselect = "AL1"\n',
            ":3: select must be a list of strings, not 'AL1'",
            id="a string for a list",
        ),
        pytest.param(
            "[tool.aliaslint]\nignore = [1]\n",
            ":2: ignore must be a list of strings, not [1]",
            id="a list of numbers",
        ),
        pytest.param(
            '[tool.aliaslint]\nunsafe-fixes = "yes"\n',
            ":2: unsafe-fixes must be true or false, not 'yes'",
            id="a string for a flag",
        ),
        pytest.param(
            "[tool.aliaslint]\nmlx-lm = 0.31\n",
            ":2: mlx-lm must be a string, not 0.31",
            id="a number for a version",
        ),
        pytest.param(
            '[tool.aliaslint]\nexposed-attributes = ["self.offset"]\n',
            ":2: exposed-attributes must be a list of names (offset, lengths, …), "
            "not ['self.offset']",
            id="an expression for a name",
        ),
        pytest.param(
            '[tool.aliaslint]\nper-file-ignores = ["AL1"]\n',
            ":2: per-file-ignores must be a table of patterns and lists "
            '("tests/**" = ["AL001"]), not [\'AL1\']',
            id="a list for a table",
        ),
        pytest.param(
            'tool.aliaslint = "all"\n', ": [tool.aliaslint] must be a table", id="not a table"
        ),
    ],
)
def test_a_mistake_is_one_line_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    path = configure(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        find(tmp_path)
    assert str(caught.value) == f"{path}{message}"


def test_a_folder_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    path = configure(tmp_path, '[tool.aliaslint]\nmlx-lm = "forks/mlx_lm"\n')
    with pytest.raises(ConfigError) as caught:
        find(tmp_path)
    missing = tmp_path / "forks" / "mlx_lm"
    expected = f"{path}: mlx-lm must be a version or a folder; {missing} is neither"
    assert str(caught.value) == expected


@pytest.mark.parametrize("key", ["exclude", "extend-exclude"])
@pytest.mark.parametrize("pattern", ["[", "a[b", "[]", "[!]", "[z-a]", "!", "a\\"])
def test_what_is_no_pattern_is_an_error(tmp_path: Path, key: str, pattern: str) -> None:
    path = configure(tmp_path, f"[tool.aliaslint]\n{key} = ['ok', '{pattern}']\n")
    with pytest.raises(ConfigError) as caught:
        find(tmp_path)
    expected = f"{path}:2: {key}: {pattern!r} is not a pattern as in a .gitignore"
    assert str(caught.value) == expected


def test_an_ignored_pattern_that_is_none_is_an_error(tmp_path: Path) -> None:
    path = configure(tmp_path, "[tool.aliaslint]\nper-file-ignores = {'![' = ['AL1']}\n")
    with pytest.raises(ConfigError) as caught:
        find(tmp_path)
    expected = f"{path}:2: per-file-ignores: '[' is not a pattern as in a .gitignore"
    assert str(caught.value) == expected


@pytest.mark.parametrize("pattern", ["[ab]c", "[]]", "[!]]", "[^a]", "x[a-z]*.py", "\\[", "!a"])
def test_brackets_and_escapes_of_patterns(tmp_path: Path, pattern: str) -> None:
    configure(tmp_path, f"[tool.aliaslint]\nexclude = ['{pattern}']\n")
    assert find(tmp_path).exclude == (pattern,)


@pytest.mark.parametrize(
    ("text", "what"),
    [("tool = 3\n", "[tool]"), ("[tool]\naliaslint = 3\n", "[tool.aliaslint]")],
)
def test_what_should_be_a_table(tmp_path: Path, text: str, what: str) -> None:
    path = configure(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        find(tmp_path)
    assert str(caught.value) == f"{path}: {what} must be a table"


def test_a_folder_whose_name_begins_with_a_digit_is_no_version(tmp_path: Path) -> None:
    path = configure(tmp_path, '[tool.aliaslint]\nmlx-lm = "3rdparty"\n')
    with pytest.raises(ConfigError) as caught:
        find(tmp_path)
    folder = tmp_path / "3rdparty"
    expected = f"{path}: mlx-lm must be a version or a folder; {folder} is neither"
    assert str(caught.value) == expected
    folder.mkdir()
    assert find(tmp_path).mlx_lm == str(folder)


@pytest.mark.parametrize("text", ["[tool.aliaslint\n", "[tool.other\n", "[tool"])
def test_broken_toml_is_an_error(tmp_path: Path, text: str) -> None:
    path = configure(tmp_path, text)
    with pytest.raises(ConfigError, match="is not valid TOML") as caught:
        find(tmp_path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_utf_8_is_an_error(tmp_path: Path) -> None:
    path = configure(tmp_path, "")
    path.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="is not UTF-8"):
        find(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_an_error_and_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pyproject.toml")
    with pytest.raises(ConfigError, match="cannot be read: not a regular file"):
        find(tmp_path)


def test_broken_toml_above_the_configuration_is_not_read(tmp_path: Path) -> None:
    configure(tmp_path, "[tool")
    path = configure(tmp_path / "inner", "[tool.aliaslint]\n")
    assert find(tmp_path / "inner").source == path
