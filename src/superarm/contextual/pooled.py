"""Pooled Thompson sampling for segments: what one segment likes says something about the others."""

from typing import TYPE_CHECKING, Any

from superarm.contextual.segments import SegmentPolicy
from superarm.core.arrays import Floats, Ints
from superarm.core.tally import Feedback, Tally, View
from superarm.policies.pooled import Pool, PooledThompson

if TYPE_CHECKING:
    from superarm.core.problem import Problem


class PooledSegments(SegmentPolicy):
    """Pooled Thompson sampling on segments: the entries of all segments are those of one model.

    An arm has one effect for all segments, and every segment its own lift and its own effects of entries. How much one
    segment says about another is estimated, so the ``pooling`` of the problem's model is not used.
    """

    policy: PooledThompson

    def check(self) -> None:
        self.require_family("policy", PooledThompson, "pooled_thompson()")

    def prepare(self, problem: "Problem", tally: Tally) -> Any:
        return Pool(tally, problem.context.n_segments)

    def choose(self, problem: "Problem", view: View, memory: Any) -> Ints:
        return self.policy.choose(problem, view, memory)

    def learn(self, problem: "Problem", tally: Tally, memory: Any, feedback: Feedback, sign: float = 1.0) -> None:
        super().learn(problem, tally, None, feedback, sign)

    def refit(self, problem: "Problem", memory: Any, t: int) -> None:
        self.policy.refit(problem, memory, t)

    def estimates(self, problem: "Problem", view: View, memory: Any) -> tuple[Floats, Floats]:
        return self.policy.estimates(problem, view, memory)

    def save_state(self, memory: Any) -> dict[str, Any] | None:
        return self.policy.save_state(memory)

    def restore_state(self, memory: Any, held: dict[str, Any]) -> None:
        self.policy.restore_state(memory, held)
