"""Tables of many kinds, each as users bring them, for reports: {name: (frame or sparse matrix with labels, target)}."""

import numpy as np
import pandas as pd
import scipy.sparse as sp


def passengers(n=300, seed=0):
    """Numbers, categories, gaps, an id and names, as in the list of passengers of the Titanic."""
    rng = np.random.default_rng(seed)
    sex, cabin = rng.choice(["female", "male"], n, p=[0.35, 0.65]), rng.choice([1, 2, 3], n, p=[0.25, 0.2, 0.55])
    age = np.where(rng.random(n) < 0.2, np.nan, rng.gamma(6, 5, n).round())
    logit = 2.5 * (sex == "female") - 0.9 * cabin + 0.6 - 0.02 * np.nan_to_num(age, nan=30)
    return pd.DataFrame(
        {
            "PassengerId": np.arange(1, n + 1),
            "Survived": (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(int),
            "Pclass": cabin,
            "Name": [f"Passenger, Mr. Number {k}" for k in range(n)],
            "Sex": sex,
            "Age": age,
            "Fare": (rng.gamma(2, 10, n) * (4 - cabin)).round(2),
            "Embarked": rng.choice(["S", "C", "Q"], n, p=[0.7, 0.2, 0.1]),
        }
    )


def unbalanced(n=400, seed=0):
    """Payments, of which one in twenty is a fraud."""
    rng = np.random.default_rng(seed)
    fraud = np.arange(n) % 20 == 0
    columns = {"amount": rng.gamma(2, 30 + 60 * fraud, n).round(2), "hour": rng.integers(0, 24, n)}
    columns |= {"abroad": rng.random(n) < np.where(fraud, 0.7, 0.1), "kind": np.where(fraud, "fraud", "fine")}
    return pd.DataFrame(columns)


def many_classes(n=900, n_classes=30, seed=0):
    """Thirty species by six measures."""
    rng = np.random.default_rng(seed)
    centres, species = 2 * rng.normal(size=(n_classes, 6)), np.arange(n) % n_classes
    X = centres[species] + rng.normal(size=(n, 6))
    names = np.array([f"species {chr(65 + k % 26)}{k}" for k in range(n_classes)])
    return pd.DataFrame(X.round(3), columns=[f"measure {k}" for k in range(6)]).assign(species=names[species])


def values(n=300, seed=0):
    """Prices of houses."""
    rng = np.random.default_rng(seed)
    area, year, town = rng.gamma(8, 15, n).round(), rng.integers(1900, 2021, n), rng.choice(["Ulm", "Bonn", "Kiel"], n)
    sold = pd.Timestamp("2018-01-01") + pd.to_timedelta(rng.integers(0, 1500, n), "D")
    price = 2500 * area + 800 * (year - 1900) + 40_000 * (town == "Bonn") + rng.normal(0, 30_000, n)
    columns = {"area": area, "year": year, "town": town, "sold": sold.strftime("%Y-%m-%d"), "price": price.round(-2)}
    return pd.DataFrame(columns)


def categories(n=250, seed=0):
    """Mushrooms: categories alone."""
    rng = np.random.default_rng(seed)
    columns = {
        name: rng.choice(levels, n)
        for name, levels in (
            ("cap", ["flat", "bell", "conical"]),
            ("odour", ["none", "almond", "foul"]),
            ("gills", ["white", "brown", "black", "pink"]),
            ("ring", ["one", "two", "none"]),
        )
    }
    risk = 2 * (columns["odour"] == "foul") + (columns["gills"] == "black") - 1 + rng.normal(0, 0.7, n)
    return pd.DataFrame({**columns, "edible": np.where(risk > 0, "poisonous", "edible")})


def words(n=200, n_words=800, seed=0):
    """(sparse counts of words, labels) of texts on two topics."""
    rng = np.random.default_rng(seed)
    topic = np.arange(n) % 2
    rates = rng.gamma(0.3, 0.1, n_words) * rng.choice([1.0, 2.5], (2, n_words), p=[0.95, 0.05])
    return sp.csr_matrix(rng.poisson(rates[topic])), topic


def three_rows():
    """As few rows as there can be."""
    return pd.DataFrame({"width": [1.0, 2.0, 5.0], "length": [2.5, 3.0, 1.0], "kind": ["a", "b", "a"]})


def two_columns(n=80, seed=0):
    """One column beside the target."""
    rng = np.random.default_rng(seed)
    dose = rng.uniform(0, 10, n).round(2)
    return pd.DataFrame({"dose": dose, "response": (np.sin(dose) + 0.2 * rng.normal(size=n)).round(3)})


def leaks(n=150, seed=0):
    """A hidden copy of the target, rows that occur twice, and an id."""
    found = passengers(n, seed).drop(columns="Name")
    found["boat"] = np.where(found["Survived"] == 1, "7", "none")
    found["weight"] = np.random.default_rng(seed).normal(70, 9, n).round(2)
    return pd.concat([found, found.iloc[:30].assign(PassengerId=np.arange(n + 1, n + 31))], ignore_index=True)


def patients(n_patients=25, seed=0):
    """Visits of patients, who are the groups, with weights."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(n_patients), rng.integers(2, 9, n_patients))
    shift, n = rng.normal(size=n_patients)[patient], len(patient)
    pulse, age = (70 + 8 * shift + 4 * rng.normal(size=n)).round(), rng.integers(20, 80, n_patients)[patient]
    sick = np.where(shift + 0.8 * rng.normal(size=n) > 0, "sick", "well")
    columns = {"patient": [f"P{k:03}" for k in patient], "pulse": pulse, "age": age}
    return pd.DataFrame({**columns, "trust": rng.uniform(0.5, 1, n).round(2), "state": sick})


FRAMES = {
    "passengers": (passengers, "Survived"),
    "unbalanced": (unbalanced, "kind"),
    "many classes": (many_classes, "species"),
    "values": (values, "price"),
    "categories": (categories, "edible"),
    "three rows": (three_rows, "kind"),
    "two columns": (two_columns, "response"),
    "leaks": (leaks, "Survived"),
    "patients": (patients, "state"),
}
OPTIONS = {"patients": ("--groups", "patient", "--weights", "trust")}


def written(name, folder):
    """The words of ``foldless report`` for one of the tables, written into a folder; "words" is the sparse one."""
    if name == "words":
        from sklearn.datasets import dump_svmlight_file

        path = folder / "words.svmlight"
        dump_svmlight_file(*words(), str(path))
        return [str(path)]
    make, target = FRAMES[name]
    path = folder / f"{name}.csv"
    make().to_csv(path, index=False)
    return [str(path), "--target", target, *OPTIONS.get(name, ())]
