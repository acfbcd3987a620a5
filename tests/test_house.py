"""The shape of the source: rooms and files point one way, chains of imports are short, functions and files as well."""

import ast
import importlib
import inspect
import re
from collections import defaultdict
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "foldless"

PAGE = (SOURCE.parents[1] / "docs" / "architecture.md").read_text()

# A room imports only from rooms before it: those of the first column of the table.
FIRST_COLUMN = re.findall(r"^\| (`.*?) \|", PAGE.split("## The rooms")[1].split("##")[0], flags=re.M)
ROOMS = [name for cell in FIRST_COLUMN for name in re.findall(r"`(\w+)(?:/|\.py)`", cell)]
# The picture on the page: lines of rooms between a label and a remark; a room imports from its line and those below.
PICTURE = PAGE.split("## The picture")[1].split("```")[1].strip("\n").splitlines()
LABEL = 13  # characters
LINES = [line[LABEL:].split("    ")[0].split() for line in PICTURE]
ENGINE = "_engine"  # the folder of the rooms that know no estimator
CLASSES_OF_THEIR_ROOM = ("kernels", "precision")  # nobody else asks isinstance about their classes

# Rooms that use the library as users do. Their chains of imports are their own, and end where the library begins.
USERS = ("tables", "report", "cli", "__main__")

LONGEST_CHAIN = 20  # files, from one that imports nothing to one that nobody imports
STEPS_INSIDE = 4  # imports one after the other that stay in a room; its __init__, which lists public names, is none
FILE_LINES = 500
TEST_LINES = 600
BODY_LINES = 40  # without the docstring

# More lines than that, where the mathematics is one page.
LONG_FILES: set[str] = set()
LONG_FUNCTIONS: set[str] = set()

# Public signatures of more parameters than that. A list that names too much fails as well.
PARAMETERS = 14
LONG_SIGNATURES = {
    "chunked.ChunkedResult",  # a result: users read its fields
    "model_selection.cross_validate",  # scikit-learn's fourteen, confounds and steps
    "model_selection.permutation_test_score",  # scikit-learn's eleven, confounds, null, generalise and steps
    "tables.Study",  # a result
}


def test_the_page_on_architecture_lists_every_room():
    assert sorted(ROOMS) == sorted({room_of(name) for name in modules()})


def test_the_picture_on_the_page_shows_every_room_once():
    assert sorted(room for line in LINES for room in line) == sorted(ROOMS)


def test_the_picture_on_the_page_shows_the_direction_of_imports():
    places = {room: place for place, line in enumerate(LINES) for room in line}
    for name in modules():
        above = {target for target in targets(name) if places[room_of(target)] < places[room_of(name)]}
        assert not above, f"{name} imports {sorted(above)}"


@cache
def modules():
    """{dotted name: syntax tree} of all files but the package's own ``__init__``; names begin with the room."""
    trees = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts).removeprefix(f"{ENGINE}.")
        if name not in ("", ENGINE):
            trees[name] = ast.parse(path.read_text())
    return trees


def room_of(name):
    return name.split(".")[0]


@cache
def imported(name):
    """(file, imported name or None) of all imports from foldless in a file."""
    found = []
    for node in ast.walk(modules()[name]):
        assert not getattr(node, "level", 0), f"{name}, line {node.lineno}: import by the full name"
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.startswith("foldless.")]
            found += [(each.removeprefix("foldless.").removeprefix(f"{ENGINE}."), None) for each in names]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "foldless":
            base = node.module.removeprefix("foldless").removeprefix(".").removeprefix(ENGINE).removeprefix(".")
            for alias in node.names:
                inner = f"{base}.{alias.name}".strip(".")
                found.append((inner, None) if inner in modules() else (base, alias.name))
    return [(target, alias) for target, alias in found if target and target != name]


def targets(name):
    return {target for target, _ in imported(name)}


def longest(name, same_room=False):
    """The longest chain of imports from a file down, as a list of files."""

    @cache
    def chain(start):
        below = targets(start) & modules().keys()
        below = {each for each in below if (room_of(each) in USERS) == (room_of(start) in USERS)}
        below = [each for each in below if not same_room or room_of(each) == room_of(start)]
        return max(([start, *chain(each)] for each in below), key=len, default=[start])

    return chain(name)


@pytest.mark.parametrize("name", modules())
def test_rooms_point_one_way(name):
    assert room_of(name) in ROOMS, f"{room_of(name)} has no place among the rooms"
    place = ROOMS.index(room_of(name))
    for target in targets(name):
        assert ROOMS.index(room_of(target)) <= place, f"{name} imports {target}"
    assert room_of(name) != "reference" or not targets(name), "the oracle shares nothing with what it judges"


@pytest.mark.many_cases
@pytest.mark.parametrize("room", ROOMS)
def test_files_inside_a_room_point_one_way(room):
    inside = {name: {each for each in targets(name) if room_of(each) == room} for name in modules()}
    left = {name: below for name, below in inside.items() if room_of(name) == room}
    while left:
        free = {name for name, below in left.items() if not below & set(left)}
        assert free, f"a cycle among {sorted(left)}"
        left = {name: below for name, below in left.items() if name not in free}


@pytest.mark.parametrize("name", [name for name in modules() if (SOURCE / ENGINE / room_of(name)).exists()])
def test_the_engine_knows_no_scikit_learn(name):
    sources: list = []
    for node in ast.walk(modules()[name]):
        if isinstance(node, ast.ImportFrom):
            sources.append(node.module)
        elif isinstance(node, ast.Import):
            sources += [alias.name for alias in node.names]
    assert "sklearn" not in {source.split(".")[0] for source in sources}


def attributes(name):
    """(file, attribute) of all ``module.attribute`` of imported modules of foldless in a file."""
    tree, files = modules()[name], {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            base = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            for alias in node.names:
                path = f"{base}{alias.name}".removeprefix("foldless.").removeprefix(f"{ENGINE}.")
                files[alias.asname or alias.name] = path
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            target = files.get(ast.unparse(node.value))
            if target in modules():
                yield target, node.attr


@pytest.mark.parametrize("name", modules())
def test_underscore_names_stay_in_their_room(name):
    for target, inner in [*imported(name), *attributes(name)]:
        if room_of(target) != room_of(name):
            inside_the_room = [*target.split(".")[1:], inner or ""]
            private = [part for part in inside_the_room if part.startswith("_") and not part.startswith("__")]
            assert not private, f"{name} uses {target}.{inner or ''}"


def test_no_two_classes_have_one_name():
    places = defaultdict(list)
    for name, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{name}, line {node.lineno}")
    shared = {label: where for label, where in places.items() if len(where) > 1}
    assert not shared


def lists_public_names(tree):
    names = {ast.unparse(node.targets[0]) for node in tree.body if isinstance(node, ast.Assign)}
    return "__all__" in names


DOORS = [room for room in ROOMS if lists_public_names(modules()[room])]


def public_callables(room):
    """(name, function or class) of all public names of a room, and of public methods of its classes."""
    inside = (SOURCE / ENGINE / room).exists()
    module = importlib.import_module(f"foldless.{ENGINE}.{room}" if inside else f"foldless.{room}")
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.isclass(thing):
            for key, method in inspect.getmembers(thing, inspect.isroutine):
                if not key.startswith("_") and (getattr(method, "__module__", None) or "").startswith("foldless"):
                    yield f"{name}.{key}", method
        if callable(thing) and not (inspect.isclass(thing) and issubclass(thing, Exception)):
            yield name, thing


def number_of_parameters(function):
    return len([name for name in inspect.signature(function).parameters if name != "self"])


@pytest.mark.parametrize("room", DOORS)
def test_public_signatures_are_short(room):
    try:
        public = list(public_callables(room))
    except ImportError as error:
        pytest.skip(str(error))
    counts = {f"{room}.{name}": number_of_parameters(thing) for name, thing in public}
    long = {name: count for name, count in counts.items() if count > PARAMETERS}
    assert long.keys() == {name for name in LONG_SIGNATURES if room_of(name) == room}, long


def test_long_signatures_are_those_of_public_rooms():
    assert {room_of(name) for name in LONG_SIGNATURES} <= set(DOORS)


@pytest.mark.parametrize("name", [name for name in modules() if room_of(name) != "linalg"])
def test_verbs_on_matrices_come_from_linalg_alone(name):
    """Another kind of arrays is then chosen in one place; the oracle has NumPy's own."""
    assert "linalg.numpy" not in targets(name)
    asked = {ast.unparse(node) for node in ast.walk(modules()[name]) if isinstance(node, ast.Attribute)}
    for node in ast.walk(modules()[name]):
        if isinstance(node, ast.Import):
            asked |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            asked |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    assert name == "reference" or not asked & {"np.linalg", "numpy.linalg", "scipy.linalg", "sp.linalg"}


ROOMS_OF_ARRAYS = ("heldout", "online", "permutation", "precision", "readout")
OF_NUMPY_ALONE = {"flat", "ix_", "fill_diagonal", "copyto", "ascontiguousarray", "asfortranarray"}
ON_THE_HOST = {"heldout.rows", "readout.codings"}  # where rows of users and labels are


@pytest.mark.parametrize("name", [name for name in modules() if room_of(name) in ROOMS_OF_ARRAYS])
def test_the_engine_reaches_into_arrays_by_verbs_alone(name):
    inside = {node.attr for node in ast.walk(modules()[name]) if isinstance(node, ast.Attribute)}
    found = inside & OF_NUMPY_ALONE
    assert not found or name in ON_THE_HOST, f"{name} uses {sorted(found)}; take a verb of linalg"


def test_nobody_asks_for_the_class_of_a_kernel_or_holder():
    owner = {
        node.name: room_of(name)
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and room_of(name) in CLASSES_OF_THEIR_ROOM
    }
    asked = []
    for name, tree in modules().items():
        for node in ast.walk(tree):
            kinds = []
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
                kinds = [node.args[1]]
            elif isinstance(node, ast.Compare) and "type" in {getattr(each, "id", "") for each in ast.walk(node.left)}:
                kinds = node.comparators
            for kind in [part for each in kinds for part in ast.walk(each)]:
                label = getattr(kind, "id", getattr(kind, "attr", ""))
                if owner.get(label, room_of(name)) != room_of(name):
                    asked.append(f"{name}, line {node.lineno}: {label}")
    assert not asked


def test_chains_of_imports_are_short():
    TopologicalSorter({name: targets(name) & modules().keys() for name in modules()}).prepare()  # raises at a cycle
    chain = max((longest(name) for name in modules()), key=len)
    assert len(chain) <= LONGEST_CHAIN, " -> ".join(chain)
    for name in set(modules()) - set(ROOMS):
        inside = longest(name, same_room=True)
        assert len(inside) - 1 <= STEPS_INSIDE, " -> ".join(inside)


def test_files_are_short():
    lines = defaultdict(int)
    for path in SOURCE.rglob("*.py"):
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        lines[name] = len(path.read_text().splitlines())
    long = {name for name, count in lines.items() if count > FILE_LINES}
    assert long == LONG_FILES


def test_test_files_are_short():
    long = [
        path.name for path in Path(__file__).parent.rglob("*.py") if len(path.read_text().splitlines()) > TEST_LINES
    ]
    assert not long


def test_functions_are_short():
    long = set()
    for name, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                documented = ast.get_docstring(node) is not None and len(node.body) > 1
                first = node.body[1 if documented else 0].lineno
                if node.end_lineno - first + 1 > BODY_LINES:
                    long.add(f"{name}.{node.name}")
    assert long == LONG_FUNCTIONS


TESTS = Path(__file__).parent
GENERATORS = ("default_rng", "RandomState", "Generator", "Random")


def module_name(path):
    return ".".join(path.relative_to(TESTS).with_suffix("").parts)


@cache
def trees_of_tests():
    """{dotted name: syntax tree} of all files of tests."""
    return {module_name(path): ast.parse(path.read_text()) for path in sorted(TESTS.rglob("*.py"))}


def shared_generators(name):
    """The names of random generators at the top of a file of tests, its own and imported ones."""
    names = set()
    for node in trees_of_tests()[name].body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            if ast.unparse(node.value.func).split(".")[-1] in GENERATORS:
                names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.ImportFrom) and node.module in trees_of_tests():
            theirs = shared_generators(node.module)
            names |= {alias.asname or alias.name for alias in node.names if alias.name in theirs}
    return names


def names_from_outside(function):
    """The names that a function reads but neither takes nor sets."""
    arguments = [argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)]
    body = function.body if isinstance(function.body, list) else [function.body]
    names = [node for statement in body for node in ast.walk(statement) if isinstance(node, ast.Name)]
    own = {node.id for node in names if isinstance(node.ctx, ast.Store)} | set(arguments)
    return {node.id for node in names} - own


def test_tests_of_a_file_share_no_random_generator():
    """The data of a test would depend on which tests ran before it; data drawn at import do not."""
    shared = []
    for name, tree in trees_of_tests().items():
        generators = shared_generators(name)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.Lambda) and generators & names_from_outside(node):
                shared.append(f"{name}, line {node.lineno}")
    assert not shared
