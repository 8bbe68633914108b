from tokenflock.errors import SimulationError as SimulationError
from tokenflock.errors import UserError as UserError
from tokenflock.verbs.cite import cite as cite
from tokenflock.verbs.merges import dwell_times as dwell_times
from tokenflock import dynamics as dynamics
from tokenflock.verbs.ensemble import ensemble as ensemble
from tokenflock import events as events
from tokenflock.verbs.simulate import flow as flow
from tokenflock.verbs.flow_map import flow_map as flow_map
from tokenflock import gpt as gpt
from tokenflock.verbs.jacobian import jacobian as jacobian
from tokenflock.laboratory.lab import lab as lab
from tokenflock.verbs.save_load import load as load
from tokenflock.verbs.lyapunov import lyapunov as lyapunov
from tokenflock import matrices as matrices
from tokenflock import meanfield as meanfield
from tokenflock.verbs.measure import measure as measure
from tokenflock.verbs.member import member as member
from tokenflock.verbs.merges import merges as merges
from tokenflock import observables as observables
from tokenflock import papers as papers
from tokenflock.verbs.phase_diagram import phase_diagram as phase_diagram
from tokenflock import plots as plots
from tokenflock.probing.layers import probe as probe
from tokenflock import probing as probing
from tokenflock.verbs.cite import references as references
from tokenflock.reproduction.reproduce import reproduce as reproduce
from tokenflock.verbs.rerun import rerun as rerun
from tokenflock.verbs.save_load import save as save
from tokenflock.verbs.simulate import simulate as simulate
from tokenflock import solvers as solvers
from tokenflock import spaces as spaces
from tokenflock.verbs.jacobian import spectrum as spectrum
from tokenflock import starts as starts
from tokenflock.steering.search import steer as steer
from tokenflock import steering as steering
from tokenflock.sweeps.run import sweep as sweep
from tokenflock import sweeps as sweeps
from tokenflock import theory as theory

__version__: str

__all__ = [
    "SimulationError",
    "UserError",
    "cite",
    "dwell_times",
    "dynamics",
    "ensemble",
    "events",
    "flow",
    "flow_map",
    "gpt",
    "jacobian",
    "lab",
    "load",
    "lyapunov",
    "matrices",
    "meanfield",
    "measure",
    "member",
    "merges",
    "observables",
    "papers",
    "phase_diagram",
    "plots",
    "probe",
    "probing",
    "references",
    "reproduce",
    "rerun",
    "save",
    "simulate",
    "solvers",
    "spaces",
    "spectrum",
    "starts",
    "steer",
    "steering",
    "sweep",
    "sweeps",
    "theory",
]
