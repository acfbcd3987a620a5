"""The pages on the code are those of the code: paths and names exist, and the calls happen in the order of the page."""

import ast
import re
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import KFold

import foldless
from foldless import LSSVC
from foldless.model_selection import permutation_test_score

HERE = Path(__file__)
ROOT = HERE.parents[1]
SOURCE = ROOT / "src" / "foldless"
PAGES = ["README.md", "CONTRIBUTING.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
FOLDERS = (SOURCE, SOURCE / "_engine", ROOT, ROOT / "tests")  # that paths on the pages begin in

FENCE = re.compile(r"```.*?```", flags=re.S)
PATH = re.compile(r"[\w.-]+(/[\w.-]+)*(/|\.(py|md|toml))")
DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
LIBRARIES = {"mne", "np", "pickle", "scipy", "sklearn"}
OTHER_NAMES = {  # of libraries and data, and the end of names
    *("HistGradientBoostingClassifier", "LogisticRegressionCV", "NuSVC", "OneClassSVM", "SlidingEstimator"),
    *("cho_factor", "kddcup99", "QUIET", "_fwe"),
}
LINE_OF_CALL = re.compile(r"(?P<indent> *)(?P<function>[\w.]+)  +(?P<path>[\w/]+\.py)(  +\S.*)?")


def code_of(text):
    """All that stands between backticks in a line, without the fenced blocks."""
    return re.findall(r"`([^`\n]+)`", FENCE.sub("", text))


def exists(path):
    return any((folder / path).exists() for folder in FOLDERS)


# -- the names of the source -------------------------------------------------------------------------------------------


@cache
def modules():
    """{dotted name: syntax tree} of all files of the package, without ``foldless`` and ``_engine``."""
    trees = {}
    for folder in (SOURCE, SOURCE / "_engine"):
        for path in folder.rglob("*.py"):
            name = ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
            trees[name] = ast.parse(path.read_text())
    return trees


def names_in(tree):
    """The functions, classes, arguments, variables and attributes that a syntax tree sets."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.id if isinstance(node, ast.Name) else node.attr)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name)
    return names


@cache
def members():
    """{class: names of its methods, fields and attributes, with those of its bases}."""
    inside, bases = defaultdict(set), defaultdict(set)
    for tree in modules().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                inside[node.name] |= names_in(node)
                bases[node.name] |= {ast.unparse(base).split(".")[-1] for base in node.bases}

    def with_bases(name):
        return inside[name].union(*(with_bases(base) for base in bases[name] if base in inside))

    return {name: with_bases(name) for name in list(inside)}


@cache
def all_names():
    """Names of modules, all that they set, public names, and every word of the tests."""
    names = {"foldless", *OTHER_NAMES, *(part for name in modules() for part in name.split("."))}
    words = {word for path in (ROOT / "tests").rglob("*.py") for word in words_of(path)}
    return names.union(words, *map(names_in, modules().values()), foldless.__all__)


def words_of(path):
    """The name of a file of tests, and unless it is this one all words in it."""
    return [path.stem, *(re.findall(r"[A-Za-z_]\w*", path.read_text()) if path != HERE else [])]


def is_name(dotted):
    """Whether a dotted name is one of a module, of what it holds, of a class or of what it holds; or of a library.

    Of a variable, as in ``result.pvalue``, the attributes must be known.
    """
    parts = dotted.removeprefix("foldless.").removeprefix("_engine.").split(".")
    if parts[0] in LIBRARIES:
        return True
    for length in range(len(parts), 0, -1):
        if ".".join(parts[:length]) in modules():
            inside = parts[length:]
            known = names_in(modules()[".".join(parts[:length])]) if inside else set()
            return not inside or (inside[0] in known and (len(inside) == 1 or is_name(".".join(inside))))
    if parts[0] in members() and len(parts) > 1:
        return len(parts) == 2 and parts[1] in members()[parts[0]]
    is_variable = len(parts) > 1 and parts[0].islower()
    return set(parts[is_variable:]) <= all_names()


def unknown_names(text):
    """The paths and names between backticks that do not exist.

    Other code is not checked, nor are letters of formulas and parameters such as ``kernel__length``.
    """
    unknown = []
    for code in code_of(text):
        if PATH.fullmatch(code):
            unknown += [] if exists(code) else [code]
            continue
        called = re.fullmatch(r"([\w.]+)(\(.*\))?", code)
        name = called[1] if called else ""
        if DOTTED.fullmatch(name) and len(name) > 2 and "__" not in name and not is_name(name):
            unknown.append(code)
    return unknown


@pytest.mark.parametrize("page", PAGES)
def test_paths_and_names_on_the_page_exist(page):
    assert not unknown_names((ROOT / page).read_text())


@pytest.mark.parametrize(
    "code", ["no/such/file.py", "heldout/no_such_file.py", "NoSuchClass", "Sets.no_such_method", "heldout.sets.NoSuch"]
)
def test_a_name_that_does_not_exist_is_noticed(code):
    assert unknown_names(f"A line with `{code}` and `Sets.leave_one_out(n)` of `heldout/sets.py`.") == [code]


# -- the calls ---------------------------------------------------------------------------------------------------------


def calls_on_the_page():
    """{heading: [(path, function, places of the lines that it is called below)]} of all blocks with calls."""
    calls = {}
    for section in (ROOT / "docs" / "architecture.md").read_text().split("\n## ")[1:]:
        heading = section.splitlines()[0]
        for block in FENCE.findall(section):
            lines = [LINE_OF_CALL.fullmatch(line) for line in block.splitlines()[1:-1]]
            if any(lines):
                assert all(lines), f"{heading}: {block.splitlines()[1 + lines.index(None)]!r} is not a line of a call"
                calls[heading] = with_callers(lines)
    return calls


def with_callers(lines):
    """[(path, function, places of its callers)] of lines that are indented below the functions that call them."""
    calls, above = [], []  # above: (indent, place) of the lines that the next one may be called by
    for place, line in enumerate(lines):
        indent = len(line["indent"])
        above = [(outer, caller) for outer, caller in above if outer < indent]
        calls.append((line["path"], line["function"], [caller for _, caller in above]))
        above.append((indent, place))
    return calls


def recorded_calls(call):
    """[((path, function), those that it is called by)] of all functions of foldless that a call runs, in order."""
    stack, calls = [], []

    def record(frame, event, _):
        path = Path(frame.f_code.co_filename)
        if event not in ("call", "return") or not path.is_relative_to(SOURCE):
            return
        if event == "return":
            stack.pop()
            return
        place = path.relative_to(SOURCE).as_posix().removeprefix("_engine/"), frame.f_code.co_qualname
        calls.append((place, tuple(stack)))
        stack.append(place)

    before = sys.getprofile()
    sys.setprofile(record)
    try:
        call()
    finally:
        sys.setprofile(before)
    return calls


def data_of_two_classes():
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    return rng.normal(size=(40, 3, 2)) + y[:, None, None], y


def leave_one_out():
    X, y = data_of_two_classes()
    return LSSVC().fit(X[:, :, 0], y).loo_score_


def permutation_test_of_a_family():
    X, y = data_of_two_classes()
    cv = KFold(4, shuffle=True, random_state=0)
    return permutation_test_score(LSSVC(), X, y, cv=cv, n_permutations=9, scoring="accuracy")


CALLS = {
    "One call: leave-one-out of a fitted model": leave_one_out,
    "Another call: a permutation test of a family": permutation_test_of_a_family,
}


def test_the_page_follows_these_calls():
    assert calls_on_the_page().keys() == CALLS.keys()


@pytest.mark.parametrize("heading", CALLS)
def test_calls_happen_in_the_order_of_the_page(heading):
    recorded, position = recorded_calls(CALLS[heading]), 0
    on_page = calls_on_the_page()[heading]
    for path, function, callers in on_page:
        outer = {on_page[caller][:2] for caller in callers}
        rest = recorded[position:]
        steps = [step for step, (place, above) in enumerate(rest) if place == (path, function) and outer <= set(above)]
        assert steps, f"{function} of {path} is not called there"
        position += steps[0] + 1
