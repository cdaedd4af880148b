"""The label of every bound, for tables, figures and reports."""

LABELS = {
    "upper_bound": "Theorem 1 (BC-UCB)",
    "upper_bound_sharp": "sharpened (BC-UCB)",
    "upper_bound_sharp_gap_free": "sharpened, without gaps (BC-UCB)",
    "upper_bound_sequences": "Theorem 1, other sequences (BC-UCB)",
    "upper_bound_unsplit": "Theorem 1, not split into items (BC-UCB)",
    "upper_bound_gap_free": "Corollary 1 (BC-UCB)",
    "upper_bound_kl": "KL theorem (KL-UCB, 3 log t)",
    "upper_bound_kl_gap_free": "KL theorem without gaps (KL-UCB, 3 log t)",
    "upper_bound_kl_late": "KL theorem, late feedback (KL-UCB, 3 log t)",
    "upper_bound_kl_default": "KL theorem (KL-UCB, log t + 3 log log t)",
    "upper_bound_kl_default_gap_free": "KL theorem without gaps (KL-UCB, log t + 3 log log t)",
    "upper_bound_local": "local KL theorem (KL-UCB, 3 log t)",
    "upper_bound_local_default": "local KL theorem (KL-UCB, log t + 3 log log t)",
    "upper_bound_cascade": "cascade theorem (BCUCB-T)",
    "upper_bound_cascade_kl": "cascade theorem (KL-UCB, log t + 3 log log t)",
    "upper_bound_wang_chen": "Wang-Chen (CUCB)",
    "lower_bound": "Lai-Robbins rate × log T, this size and gap",
    "lower_bound_independent": "Lai-Robbins rate × log T, this size and gap, independent items",
    "lower_bound_gap_free": "gap-free, some instance of this size",
    "graves_lai": "Graves-Lai rate × log T, this instance",
}
"""By the name of the function in ``superarm.theory``."""

REPORTED = (
    "upper_bound",
    "upper_bound_gap_free",
    "upper_bound_sharp",
    "upper_bound_sharp_gap_free",
    "upper_bound_kl",
    "upper_bound_kl_gap_free",
    "upper_bound_local",
    "upper_bound_kl_default",
    "upper_bound_kl_default_gap_free",
    "upper_bound_local_default",
    "upper_bound_cascade",
    "upper_bound_cascade_kl",
    "upper_bound_wang_chen",
)
"""The upper bounds that reports show where they apply."""
