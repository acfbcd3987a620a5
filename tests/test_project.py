"""The project keeps its own promises: documentation, public names (its shape: test_house)."""

import ast
import doctest
import inspect
import re
from pathlib import Path

import pytest
from numpy.testing import assert_equal

import foldless
from foldless import chunked, model_selection, stats

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "foldless"


def modules():
    return sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


def test_every_module_has_a_docstring():
    for path in modules():
        docstring = ast.get_docstring(ast.parse(path.read_text()))
        assert docstring, path
        assert len(docstring.splitlines()[0]) > 20, path


PAGES_WITH_EXAMPLES = [
    "README.md",
    *(
        f"docs/{name}.md"
        for name in (
            "approximation",
            "calibration",
            "choosing",
            "clusters",
            "conformal",
            "from-svc",
            "inference",
            "inspection",
            "multiple-kernels",
            "online",
            "permutation",
            "saving",
            "scale",
            "scaling",
            "tuning",
        )
    ),
]


@pytest.mark.parametrize("page", PAGES_WITH_EXAMPLES)
def test_examples_on_a_page_print_what_the_page_says(page):
    text = (ROOT / page).read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    sessions = [block for block in blocks if ">>>" in block]
    assert sessions
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    namespace = {}
    for number, block in enumerate(sessions):
        test = parser.get_doctest(block, namespace, f"{page} example {number}", page, 0)
        runner.run(test, clear_globs=False)
        namespace = test.globs
    assert runner.failures == 0


def public():
    for name in foldless.__all__:
        if name != "__version__":
            yield name, getattr(foldless, name)
    for module in (model_selection, stats, chunked):
        for name in module.__all__:
            yield name, getattr(module, name)


@pytest.mark.parametrize(("name", "thing"), list(public()))
def test_public_names_have_docstrings_and_examples(name, thing):
    assert inspect.getdoc(thing), name
    if not name.endswith(("Result", "Interval")) and name not in (
        "RefitWarning",
        "Route",
        "Chunk",
        "ChunkError",
        "Source",
    ):
        assert ">>>" in inspect.getdoc(thing), f"{name} has no example"


@pytest.mark.parametrize(
    "kind",
    [
        foldless.LSSVC,
        foldless.LSSVR,
        foldless.KernelFisherDiscriminant,
        foldless.FoldlessSearchCV,
        foldless.AdaptiveKDA,
        foldless.estimators.SlidingWindow,
    ],
)
def test_docstrings_describe_every_parameter_in_order(kind):
    documented = re.findall(r"^(\w[\w, ]*) : ", inspect.getdoc(kind).split("Attributes\n")[0], flags=re.M)
    assert ", ".join(documented).split(", ") == list(inspect.signature(kind).parameters)
    for method, function in inspect.getmembers(kind, inspect.isfunction):
        if method.startswith("_") or function.__module__.split(".")[0] != "foldless":
            continue
        assert function.__doc__, f"{kind.__name__}.{method}"


def test_signatures_are_scikit_learns():
    from sklearn import model_selection as theirs

    for name in ("cross_val_predict", "cross_val_score", "cross_validate", "permutation_test_score"):
        ours = inspect.signature(getattr(model_selection, name)).parameters
        expected = inspect.signature(getattr(theirs, name)).parameters
        assert list(ours)[: len(expected)] == list(expected)  # ours come after theirs
        for key in expected:
            parameter = ours[key]
            assert parameter.kind == expected[key].kind, key
            assert_equal(parameter.default, expected[key].default, err_msg=key)  # error_score is nan


def test_the_version_is_in_the_changelog():
    assert f"## {foldless.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_tests_that_the_pages_name_exist():
    files = list((ROOT / "tests").rglob("*.py"))
    known = [path.stem for path in files]
    known += [name for path in files for name in re.findall(r"^def (test_\w+)", path.read_text(), flags=re.M)]
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    named = {name for page in pages for name in re.findall(r"(?<!\")\b(test_\w+)", page.read_text())}
    assert named
    assert not [name for name in named if not any(each.startswith(name) for each in known)]


def test_pages_hold_no_place_left_to_be_filled():
    """Words in capitals outside of code, such as a table that a script was to write."""
    for page in [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
        text = re.sub(r"```.*?```|`[^`\n]*`|\[[^]]*\]\([^)]*\)", "", page.read_text(), flags=re.DOTALL)
        assert not re.findall(r"\b[A-Z]{8,}\b", text), page.name


def test_install_hints_name_packages_that_can_be_installed():
    """foldless itself is installed from its own folder, ``pip install .``; no registry has it."""
    folders = ("src", "docs", "examples", "benchmarks")
    files = [path for folder in folders for kind in ("py", "md") for path in (ROOT / folder).rglob(f"*.{kind}")]
    hints = [hint for path in [*files, ROOT / "README.md"] for hint in re.findall("pip install .*", path.read_text())]
    assert hints
    assert not [hint for hint in hints if "foldless" in hint.split("#")[0]]
