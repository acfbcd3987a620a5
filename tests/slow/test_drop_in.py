"""scikit-learn's own tests of cross-validation, with foldless' four functions in the place of its own."""

import importlib.util

import pytest
from sklearn import model_selection

import foldless.model_selection as fl

FUNCTIONS = ("cross_validate", "cross_val_score", "cross_val_predict", "permutation_test_score")
SOLVERS = "scikit-learn's iterative solver of sparse data stops early; foldless has the exact solution"
EXPECTED = {
    "test_cross_validate[csr_matrix-True]": SOLVERS,
    "test_cross_validate[csr_array-True]": SOLVERS,
    "test_permutation_test_score_params": "weights of a wrong length are refused before any training part is made",
}

# Most estimators of these tests are refitted, which is said.
pytestmark = pytest.mark.filterwarnings("ignore")


def load():
    """The test module, made anew with our functions under scikit-learn's names."""
    spec = importlib.util.find_spec("sklearn.model_selection.tests.test_validation")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        for name in FUNCTIONS:
            patch.setattr(model_selection, name, getattr(fl, name))
        spec.loader.exec_module(module)
    return module


@pytest.fixture
def global_random_seed():
    return 42


@pytest.fixture(autouse=True)
def _expected(request):
    """A test that is expected to fail must."""
    if request.node.name in EXPECTED:
        request.applymarker(pytest.mark.xfail(reason=EXPECTED[request.node.name], strict=True))


globals().update({name: test for name, test in vars(load()).items() if name.startswith("test_") and callable(test)})
