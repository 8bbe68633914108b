from tokenflock.sweeps.planning import Forecast as Forecast
from tokenflock.sweeps.refine import Refine as Refine
from tokenflock.sweeps.spec import Spec as Spec
from tokenflock.sweeps.spec import SpecError as SpecError
from tokenflock.sweeps.inspecting import Status as Status
from tokenflock.sweeps.store import Store as Store
from tokenflock.sweeps.run import SweepView as SweepView
from tokenflock.sweeps.pooling import between as between
from tokenflock.sweeps.inspecting import check as check
from tokenflock.sweeps.planning import forecast as forecast
from tokenflock.sweeps.spec import read_spec as read_spec
from tokenflock.sweeps.inspecting import repair as repair
from tokenflock.sweeps.inspecting import status as status
from tokenflock.sweeps.run import sweep as sweep

__all__ = [
    "Forecast",
    "Refine",
    "Spec",
    "SpecError",
    "Status",
    "Store",
    "SweepView",
    "between",
    "check",
    "forecast",
    "read_spec",
    "repair",
    "status",
    "sweep",
]
