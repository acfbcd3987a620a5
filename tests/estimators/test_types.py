"""The library is typed: every public signature says what it takes and what it returns."""

import importlib.util
import inspect
from pathlib import Path

import pytest

import foldless

MODULES = ["estimators", "inspection", "kernels", "model_selection", "reduction", "reference", "stats"]
MODULES += ["river"] if importlib.util.find_spec("river") else []  # an optional dependency


def public_names():
    """(module.name, object) of all public functions and classes of foldless."""
    for name in MODULES:
        module = importlib.import_module(f"foldless.{name}")
        for each, thing in vars(module).items():
            listed = each in getattr(module, "__all__", [each]) and not each.startswith("_")
            if listed and getattr(thing, "__module__", "").startswith("foldless") and callable(thing):
                yield f"{name}.{each}", thing


def functions(thing):
    """{name: function} that a public name is made of: itself, or the constructor, methods and properties of a class."""
    if not inspect.isclass(thing):
        return {"": thing}
    found = {}
    for name in dir(thing):
        member = inspect.getattr_static(thing, name)
        member = getattr(member, "fget", None) or getattr(member, "__func__", None) or getattr(member, "fn", member)
        ours = getattr(member, "__module__", None) or ""
        if inspect.isfunction(member) and ours.startswith("foldless") and (name == "__init__" or name[0] != "_"):
            found[name] = member
    return found


@pytest.mark.parametrize(("name", "thing"), [pytest.param(*pair, id=pair[0]) for pair in public_names()])
def test_public_signatures_are_annotated(name, thing):
    for part, function in functions(thing).items():
        signature = inspect.signature(function)
        bare = [
            each.name
            for each in signature.parameters.values()
            if each.annotation is each.empty and each.name not in ("self", "cls")
        ]
        assert not bare, f"{name}.{part}: {bare} have no types"
        assert signature.return_annotation is not signature.empty, f"{name}.{part} does not say what it returns"


def test_the_marker_of_typed_packages_is_there():
    assert (Path(foldless.__file__).parent / "py.typed").exists()
