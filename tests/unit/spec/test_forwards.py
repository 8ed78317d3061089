from causalab_mini.spec.document import Intervention
from causalab_mini.spec.forwards import forwards, generated


def intervention(reads: dict, writes: dict, models: dict, decode: int = 0) -> Intervention:
    """Reads as name → (model, role), writes as name → operand, models as name → (role, writes)."""
    return Intervention.model_validate(
        {
            "reads": {
                name: {"site": "s", "pos": 0, "model": model, "input": role} for name, (model, role) in reads.items()
            },
            "writes": {
                name: {"site": "s", "pos": 0, "mechanism": "swap", "operand": operand}
                for name, operand in writes.items()
            },
            "models": {name: {"input": role, "writes": used} for name, (role, used) in models.items()},
            "decode": decode,
        }
    )


def test_forwards_are_what_reads_use_and_what_models_declare():
    found = forwards(
        intervention(
            {"a": ("original", "cf"), "b": ("m", "cf")}, {"w": "a"}, {"m": ("base", ["w"]), "idle": ("base", [])}
        )
    )
    assert found == (("original", "cf"), ("idle", "base"), ("m", "base"), ("m", "cf"))


def test_operands_decide_the_order_and_names_the_rest():
    chain = intervention(
        {"a": ("original", "base"), "b": ("z", "base"), "c": ("a", "base"), "d": ("k", "cf")},
        {"w": "a", "v": "b", "u": 1.0},
        {"a": ("base", ["v"]), "z": ("base", ["w"]), "k": ("cf", ["u"])},
    )
    assert [(key.model, key.role) for key in forwards(chain)] == [
        ("original", "base"),
        ("k", "cf"),
        ("z", "base"),
        ("a", "base"),
    ]


def test_the_original_comes_first():
    found = forwards(intervention({"a": ("original", "z"), "b": ("a", "a")}, {}, {"a": ("a", [])}))
    assert found == (("original", "z"), ("a", "a"))


def test_continuations_are_named_by_model_and_by_role_where_there_are_two():
    reads = {"a": ("original", "base"), "b": ("m", "cf")}
    assert list(generated(intervention(reads, {}, {"m": ("base", [])}, decode=2))) == [
        "original.generated",
        "m@base.generated",
        "m@cf.generated",
    ]
    assert generated(intervention(reads, {}, {"m": ("base", [])})) == {}
