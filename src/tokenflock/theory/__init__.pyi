from tokenflock.theory.anisotropy import antipodal_energy as antipodal_energy
from tokenflock.theory.scaling import attention_cosine as attention_cosine
from tokenflock.theory.scaling import attention_cosine_limit as attention_cosine_limit
from tokenflock.theory.thresholds import attraction_range as attraction_range
from tokenflock.theory.probability import cap_fraction as cap_fraction
from tokenflock.theory.rates import critical_noise as critical_noise
from tokenflock.theory.scaling import critical_scaling as critical_scaling
from tokenflock.theory.sharp import cross_polytope_energy as cross_polytope_energy
from tokenflock.theory.transition import crossing_time as crossing_time
from tokenflock.theory.thresholds import curvature_minimum as curvature_minimum
from tokenflock.theory.kernel import dirac_energy as dirac_energy
from tokenflock.theory.equiangular import equiangular_cosine as equiangular_cosine
from tokenflock.theory.equiangular import equiangular_gap as equiangular_gap
from tokenflock.theory.equiangular import equiangular_speed as equiangular_speed
from tokenflock.theory.equiangular import equiangular_time as equiangular_time
from tokenflock.theory.rates import fastest_mode as fastest_mode
from tokenflock.theory.anisotropy import four_particle_share as four_particle_share
from tokenflock.theory.gaussian import gaussian_blow_up as gaussian_blow_up
from tokenflock.theory.gaussian import gaussian_flow as gaussian_flow
from tokenflock.theory.gaussian import gaussian_mean as gaussian_mean
from tokenflock.theory.gaussian import gaussian_speed as gaussian_speed
from tokenflock.theory.gaussian import gaussian_variance as gaussian_variance
from tokenflock.theory.scaling import gradient_limit as gradient_limit
from tokenflock.theory.rates import growth_rate as growth_rate
from tokenflock.theory.probability import hemisphere_probability as hemisphere_probability
from tokenflock.theory.sharp import icosahedron_energy as icosahedron_energy
from tokenflock.theory.bbgky import initial_correlation_speed as initial_correlation_speed
from tokenflock.theory.bbgky import initial_pair_density_speed as initial_pair_density_speed
from tokenflock.theory.normalisation import initial_speed as initial_speed
from tokenflock.theory.thresholds import interaction_curvature as interaction_curvature
from tokenflock.theory.kernel import kernel_eigenvalue as kernel_eigenvalue
from tokenflock.theory.layers import layer_cosines as layer_cosines
from tokenflock.theory.layers import layer_crossing as layer_crossing
from tokenflock.theory.rates import layer_terminal_rate as layer_terminal_rate
from tokenflock.theory.layers import layer_transition_curve as layer_transition_curve
from tokenflock.theory.kernel import log_kernel_eigenvalue as log_kernel_eigenvalue
from tokenflock.theory.anisotropy import maximiser_crossing as maximiser_crossing
from tokenflock.theory.pair import merging_growth as merging_growth
from tokenflock.theory.pair import merging_time as merging_time
from tokenflock.theory.middle import middle_critical_time as middle_critical_time
from tokenflock.theory.anisotropy import minimiser_tilt as minimiser_tilt
from tokenflock.theory.rates import mode_switch as mode_switch
from tokenflock.theory.normalisation import normalised_flow as normalised_flow
from tokenflock.theory.normalisation import normalised_speed as normalised_speed
from tokenflock.theory.pair import pair_cosine as pair_cosine
from tokenflock.theory.pair import pair_speed as pair_speed
from tokenflock.theory.pair import pair_time as pair_time
from tokenflock.theory.pair import pairing_angle as pairing_angle
from tokenflock.theory.sharp import plateau_energy as plateau_energy
from tokenflock.theory.ott_antonsen import poisson_density as poisson_density
from tokenflock.theory.ott_antonsen import poisson_order as poisson_order
from tokenflock.theory.ott_antonsen import poisson_quantile as poisson_quantile
from tokenflock.theory.polygon import polygon_eigenvalue as polygon_eigenvalue
from tokenflock.theory.sharp import polygon_energy as polygon_energy
from tokenflock.theory.polygon import polygon_growth as polygon_growth
from tokenflock.theory.polygon import polygon_lifetime as polygon_lifetime
from tokenflock.theory.middle import position_influence as position_influence
from tokenflock.theory.probability import renyi_centres as renyi_centres
from tokenflock.theory.thresholds import saddle_threshold as saddle_threshold
from tokenflock.theory.kernel import sampled_energy as sampled_energy
from tokenflock.theory.sharp import simplex_energy as simplex_energy
from tokenflock.theory.probability import strong_centres as strong_centres
from tokenflock.theory.rates import terminal_rate as terminal_rate
from tokenflock.theory.transition import transition_curve as transition_curve
from tokenflock.theory.anisotropy import trap_window as trap_window
from tokenflock.theory.thresholds import triangle_eigenvalue as triangle_eigenvalue
from tokenflock.theory.rates import tricritical_beta as tricritical_beta
from tokenflock.theory.anisotropy import two_cluster_growth as two_cluster_growth
from tokenflock.theory.kernel import uniform_energy as uniform_energy
from tokenflock.theory.pair import weighted_pair_speed as weighted_pair_speed

__all__ = [
    "antipodal_energy",
    "attention_cosine",
    "attention_cosine_limit",
    "attraction_range",
    "cap_fraction",
    "critical_noise",
    "critical_scaling",
    "cross_polytope_energy",
    "crossing_time",
    "curvature_minimum",
    "dirac_energy",
    "equiangular_cosine",
    "equiangular_gap",
    "equiangular_speed",
    "equiangular_time",
    "fastest_mode",
    "four_particle_share",
    "gaussian_blow_up",
    "gaussian_flow",
    "gaussian_mean",
    "gaussian_speed",
    "gaussian_variance",
    "gradient_limit",
    "growth_rate",
    "hemisphere_probability",
    "icosahedron_energy",
    "initial_correlation_speed",
    "initial_pair_density_speed",
    "initial_speed",
    "interaction_curvature",
    "kernel_eigenvalue",
    "layer_cosines",
    "layer_crossing",
    "layer_terminal_rate",
    "layer_transition_curve",
    "log_kernel_eigenvalue",
    "maximiser_crossing",
    "merging_growth",
    "merging_time",
    "middle_critical_time",
    "minimiser_tilt",
    "mode_switch",
    "normalised_flow",
    "normalised_speed",
    "pair_cosine",
    "pair_speed",
    "pair_time",
    "pairing_angle",
    "plateau_energy",
    "poisson_density",
    "poisson_order",
    "poisson_quantile",
    "polygon_eigenvalue",
    "polygon_energy",
    "polygon_growth",
    "polygon_lifetime",
    "position_influence",
    "renyi_centres",
    "saddle_threshold",
    "sampled_energy",
    "simplex_energy",
    "strong_centres",
    "terminal_rate",
    "transition_curve",
    "trap_window",
    "triangle_eigenvalue",
    "tricritical_beta",
    "two_cluster_growth",
    "uniform_energy",
    "weighted_pair_speed",
]
