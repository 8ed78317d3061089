"""What every value of a document must be, by an independent reading of it: each row alone, in plain transformers.

    told = oracle.tell(World(folder, model, root), document)      label → path of the step → Told

Imports nothing of the product.
"""

from tests.oracle.reading import observe
from tests.oracle.sweeps import expand
from tests.oracle.told import Cell, Told
from tests.oracle.world import World

__all__ = ["Cell", "Told", "World", "expand", "observe", "tell"]


def tell(world: World, document: dict) -> dict[str, dict[tuple[str, ...], Told]]:
    """Everything every point of `document` must give."""
    return {label: observe(world, point) for label, point in expand(document).items()}
