"""Settings of models as names and numbers, which is what studies hold."""

from foldless.kernels import RBF, Laplacian, Nystroem, Scaled, Sum
from foldless.kernels.registry import is_automatic
from foldless.tables.parts import FeatureScale

LEARNT = "learnt"
UNLEARNT = "rbf + laplacian"  # kernel="auto" without a search
TERMS = {RBF: "gaussian", Laplacian: "laplacian"}


def kernel_name(model):
    """The name of the kernel of a machine, or of the one that its landmarks approximate; "learnt" where it has none."""
    kernel = approximated_kernel(model.kernel)
    if is_automatic(kernel):
        return UNLEARNT
    return kernel if isinstance(kernel, str) else LEARNT


def approximated_kernel(kernel):
    """The kernel that landmarks approximate, or the kernel itself where there are none."""
    return kernel.kernel if isinstance(kernel, Nystroem) else kernel


def setting(params):
    """{name: number} of parameters of a machine; a kernel object becomes its weights, widths and number of landmarks."""
    params = dict(params)
    kernel, count = params.pop("kernel", None), params.pop("kernel__n_landmarks", None)
    if isinstance(kernel, Nystroem):
        kernel, count = kernel.kernel, kernel.n_landmarks
    return {**params, **_numbers_of(kernel), **({} if count is None else {"landmarks": count})}


def _numbers_of(kernel):
    """{name: number} of a learnt kernel, or of one of those that the search tries by themselves."""
    if isinstance(kernel, Sum):
        numbers = {}
        for weight, term in zip(kernel.weights, kernel.terms, strict=True):
            widths = _numbers_of(term)
            names = [name.replace("gamma", "weight") for name in widths]
            numbers |= dict.fromkeys(names, float(weight)) | widths
        return numbers
    if isinstance(kernel, Scaled):
        return _numbers_of(kernel.kernel)
    return {f"{TERMS[type(kernel)]}_gamma": float(kernel.gamma)} if type(kernel) in TERMS else {}


def setting_of(machine):
    """The setting of a fitted machine, its number of landmarks aside."""
    params, kernel = {"alpha": float(machine.alpha)}, approximated_kernel(machine.kernel_)
    if kernel_name(machine) in (LEARNT, UNLEARNT):
        return params | _numbers_of(kernel)
    return params | ({"gamma": float(kernel.gamma)} if hasattr(kernel, "gamma") else {})


def feature_scales(model):
    """The :class:`FeatureScale` of every feature of a fitted pipeline, the largest first; () where there are none."""
    kernel = approximated_kernel(model[-1].kernel_)
    scales = [term.scales for term in getattr(kernel, "terms", ()) if isinstance(term, Scaled)]
    if not scales:
        return ()
    names = [_readable(name) for name in model[:-1].get_feature_names_out()]
    pairs = sorted(zip(names, scales[0].tolist(), strict=True), key=lambda pair: -pair[1])
    return tuple(FeatureScale(name, scale) for name, scale in pairs)


def _readable(name):
    """The name of a feature of ``table_steps`` in the words of the table."""
    step, _, column = name.partition("__")
    return f"{column.removeprefix('missingindicator_')} is missing" if step == "gaps" else column
