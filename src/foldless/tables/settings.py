"""Settings of models as names and numbers, which is what studies hold."""

from foldless.kernels.registry import is_automatic, is_object
from foldless.tables.parts import FeatureScale

LEARNT = "learnt"
UNLEARNT = "rbf + laplacian"  # kernel="auto" without a search
TERMS = {"rbf": "gaussian", "laplacian": "laplacian"}  # of a learnt kernel


def kernel_name(model):
    """The name of the kernel of a machine, or of the one that its landmarks approximate; "learnt" where it has none."""
    kernel = approximated_kernel(model.kernel)
    if is_automatic(kernel):
        return UNLEARNT
    return LEARNT if is_object(kernel) else kernel


def approximated_kernel(kernel):
    """The kernel that landmarks approximate, or the kernel itself where there are none."""
    return kernel.kernel if is_object(kernel) and kernel.approximates else kernel


def setting(params):
    """{name: number} of parameters of a machine; of a kernel object its weights, widths and number of landmarks."""
    numbers = {name: value for name, value in params.items() if name not in ("kernel", "kernel__n_landmarks")}
    kernel, count = params.get("kernel"), params.get("kernel__n_landmarks")
    if is_object(kernel):
        numbers |= _weights_and_widths(approximated_kernel(kernel))
        count = getattr(kernel, "n_landmarks", count)
    return numbers if count is None else {**numbers, "landmarks": count}


def setting_of(machine):
    """The setting of a fitted machine, its number of landmarks aside."""
    params, kernel = {"alpha": float(machine.alpha)}, approximated_kernel(machine.kernel_)
    if kernel_name(machine) in (LEARNT, UNLEARNT):
        return params | _weights_and_widths(kernel)
    return params | ({"gamma": float(kernel.gamma)} if hasattr(kernel, "gamma") else {})


def feature_scales(model):
    """The :class:`FeatureScale` of every feature of a fitted pipeline, the largest first; () where there are none."""
    kernel = approximated_kernel(model[-1].kernel_)
    scales = [term.scales for term in getattr(kernel, "terms", ()) if hasattr(term, "scales")]
    if not scales:
        return ()
    names = [_readable(name) for name in model[:-1].get_feature_names_out()]
    pairs = sorted(zip(names, scales[0].tolist(), strict=True), key=lambda pair: -pair[1])
    return tuple(FeatureScale(name, scale) for name, scale in pairs)


def _weights_and_widths(kernel):
    """{name: number} of a learnt kernel, or of one of its terms, which the search tries by themselves."""
    terms, weights = getattr(kernel, "terms", (kernel,)), getattr(kernel, "weights", ())
    kernels = {TERMS[getattr(term, "kernel", term).name]: getattr(term, "kernel", term) for term in terms}
    widths = {f"{name}_gamma": float(kernel.gamma) for name, kernel in kernels.items()}
    return {f"{name}_weight": float(weight) for name, weight in zip(kernels, weights, strict=False)} | widths


def _readable(name):
    """The name of a feature of ``table_steps`` in the words of the table."""
    step, _, column = name.partition("__")
    return f"{column.removeprefix('missingindicator_')} is missing" if step == "gaps" else column
