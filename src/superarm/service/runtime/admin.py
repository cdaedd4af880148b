"""Administration of problems: create them, change their arms, items and settings, add past outcomes, learn items."""

import asyncio
import logging
import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, cast

import numpy as np
from msgspec import UNSET, Struct
from msgspec.structs import fields, replace

from superarm.actions import Subsets
from superarm.agent.growth import with_arms, with_items, with_room
from superarm.core.errors import InvalidArgument
from superarm.core.support import Sparse
from superarm.core.tally import Tally
from superarm.decisions import UNSEEN
from superarm.decisions.names import Names
from superarm.items.counts import learn_answers
from superarm.items.latent import Items
from superarm.service.domain import spec as specs
from superarm.service.domain.components import (
    KnapsackParameters,
    KnapsackSpec,
    SubsetsParameters,
    SubsetsSpec,
    each_arm,
)
from superarm.service.domain.context_spec import check_context
from superarm.service.domain.decision import past, past_of
from superarm.service.domain.events import Armed, Changed, Created, Itemed, Learnt, Summed, Warmed
from superarm.service.domain.learnt import LearntItems
from superarm.service.domain.ledger import Key
from superarm.service.domain.problem import ProblemState, enlarge
from superarm.service.domain.published import KEPT_SUMS, claims_of, plan_table, table_due, tally_of
from superarm.service.domain.spec import PolicySpec, ProblemSpec, Settings
from superarm.service.errors import RequestError, conflict, invalid, unknown
from superarm.service.runtime.ask import arm_numbers, digest_request
from superarm.service.runtime.coordinator import THREAD_SIZE, Coordinator, now_ms
from superarm.service.schemas import ArmsBody, ItemsBody, LearnBody, PastBody, SumsBody
from superarm.service.storage.base import StoreUnavailable
from superarm.tables import Table
from superarm.warehouse import segment_numbers


async def create(coordinator: Coordinator, tenant: str, name: str, spec: ProblemSpec, by: str, limit: int) -> bool:
    """Create a problem; False if the same one exists. Another problem of that name is a conflict."""
    if (known := coordinator.ledger.problems.get((tenant, name))) is not None:
        await coordinator.ownership.confirm((tenant, name))  # another worker may have deleted it
        known = coordinator.ledger.problems.get((tenant, name))
    if known is None:
        specs.check_new_names([name], "name")
        spec = await asyncio.to_thread(_check, spec)
        if len(await coordinator.ownership.names(tenant)) >= limit:
            said = f"this tenant has {limit} problems, the limit of this service"
            raise RequestError(429, "too_many_problems", said, 60)
        created = Created(now_ms(), spec, secrets.token_hex(16) if spec.seed is None else f"seed/{spec.seed}", by)
        await coordinator.rehearse(created)
        async with coordinator.ownership.creating((tenant, name)):
            if await coordinator.create(tenant, name, created):
                return True
        known = await coordinator.find(tenant, name)
    if known.created.spec != _like(spec, known.created.spec):
        change = "change its arms or actions (POST …/arms), items or settings"
        raise conflict(f"problem {name!r} exists and differs; {change}, or take another name")
    return False


def _like(spec: ProblemSpec, known: ProblemSpec) -> ProblemSpec:
    """A description with what its owner left out, as it is in a known problem."""
    settings, old = spec.settings, known.settings
    policy = settings.policy if settings.policy.name else replace(settings.policy, name=old.policy.name)
    weights = known.weights if spec.weights is None and policy.name in specs.SPENDING else spec.weights
    return replace(spec, weights=weights, settings=replace(settings, policy=policy))


def _check(spec: ProblemSpec) -> ProblemSpec:
    """The description with what its owner left out, if all of it fits."""
    specs.check_new_names(spec.arms, "arms")
    specs.check_new_names(spec.item_names, "items")
    try:
        problem, arms = specs.to_problem(spec), Names(spec.arms, "arms")
        spec = specs.complete(spec, problem)
        specs.check_settings(spec.settings, problem, arms)
        return spec
    except InvalidArgument as error:
        argument = f"settings.{error.argument}" if error.argument.startswith("policy.") else error.argument
        raise invalid(argument, error.wrong, error.remedy) from None


async def change_settings(
    coordinator: Coordinator, tenant: str, name: str, change: Callable[[Settings], Settings], by: str
) -> bool:
    """Make a new version of the settings, ``change`` of the current ones; False if that changes nothing."""

    def plan(learner: ProblemState) -> Changed | None:
        settings = change(learner.settings)
        specs.check_settings(settings, learner.problem, learner.arms)
        if settings == learner.settings:
            return None
        return Changed(now_ms(), len(learner.versions) + 1, settings, by, learner.t - 1)

    state = await coordinator.find(tenant, name)
    if (event := plan(state)) is not None and event.settings.policy != state.settings.policy:
        await coordinator.rehearse(state.as_created(event.settings))
    return await coordinator.change(tenant, name, plan)


def merge_settings(settings: Settings, body: Any) -> Settings:
    """The settings with the fields of ``body`` replaced. Another policy keeps no parameters of the old one.

    Of window and half-life, one that is given replaces the other.

    >>> from superarm.service.schemas import SettingsBody
    >>> merge_settings(Settings(explore=0.5), SettingsBody(late="learn")).explore
    0.5
    """
    given = _given(body, Settings)
    if "policy" in given:
        now, change = settings.policy, _given(body.policy, PolicySpec)
        if change.get("name") in (None, "", now.name):
            change |= {"name": now.name, "parameters": {**now.parameters, **change.get("parameters", {})}}
        else:
            change = {"parameters": {}, "baseline": UNSET, "caution": UNSET} | change
        for one, other in (("window", "half_life"), ("half_life", "window")):
            if isinstance(change.get(one), int):
                change.setdefault(other, UNSET)
        given["policy"] = replace(now, **change)
    return replace(settings, **given)


def with_baseline(settings: Settings, ranking: list[str]) -> Settings:
    """The settings with another ranking for the policy to follow."""
    return replace(settings, policy=replace(settings.policy, baseline=ranking))


def _given(body: Any, kind: type[Struct]) -> dict[str, Any]:
    """The fields that a change gives; null takes away what may be unset."""
    found = {one.name: (getattr(body, one.name), one.default) for one in fields(kind)}
    told = {name: pair for name, pair in found.items() if pair[0] is not UNSET}
    return {name: UNSET if value is None and default is UNSET else value for name, (value, default) in told.items()}


async def restore_settings(coordinator: Coordinator, tenant: str, name: str, version: str, by: str) -> bool:
    """The settings of an earlier version, as a new one."""
    earlier = {str(n): one for n, one in enumerate((await coordinator.find(tenant, name)).versions, 1)}.get(version)
    if earlier is None:
        raise unknown("version", version[:40])
    return await change_settings(coordinator, tenant, name, lambda _: earlier, by)


def plan_arms(learner: ProblemState, body: ArmsBody, by: str) -> Armed | None:
    """Add and retire arms; adding a retired arm restores it. What is there, or retired, already is skipped.

    Another action set is taken on with new arms and without, and so are other prices.
    """
    body, known = _with_prices(learner, body), set(learner.arms.all)
    add = [arm for arm in dict.fromkeys(body.add) if arm not in known]
    specs.check_new_names(add, "add")
    if len(learner.arms.all) + len(add) > specs.MAX_ARMS:
        raise invalid("add", "too many arms", f"a problem has at most {specs.MAX_ARMS}")
    specs.check_totals(learner.problem.reward, len(learner.arms.all) + len(add))
    names = Names([*learner.arms.all, *add], "arms")
    retire = [j for j in arm_numbers(names, list(dict.fromkeys(body.retire)), "retire") if not _gone(learner, j)]
    again = known.intersection(body.add).difference(body.retire)
    restore = sorted(j for j in arm_numbers(names, list(again), "add") if _gone(learner, j))
    actions = body.actions if add or body.actions != learner.actions else None
    now = learner.problem.actions
    room = with_room(now, learner.learner.declared, learner.problem.n_arms, len(add))
    if add and actions is None and isinstance(room, Subsets) and room is not now and room.k <= specs.MAX_K:
        actions = SubsetsSpec(SubsetsParameters(room.k))
    if not (add or retire or restore or actions):
        return None
    if not (add or actions):
        return Armed(now_ms(), [], retire, by, restore=restore)
    support, features = (_new_support(learner, add, body), _new_features(learner, add, body)) if add else (None, None)
    try:
        more = enlarge(learner.learner, add, actions, support)
        grown = with_arms(learner.problem, len(add), *more, features)
        check_context(grown)
    except InvalidArgument as error:
        remedy = error.remedy if body.actions else f"{error.remedy}; give `actions` for all arms"
        raise invalid("actions" if body.actions else "add", error.wrong, remedy) from None
    if actions is not None:
        specs.check_settings(learner.settings, grown, names)
    return Armed(now_ms(), add, retire, by, actions, support, features, restore)


def _with_prices(learner: ProblemState, body: ArmsBody) -> ArmsBody:
    """The same with the action set that has the prices and the budget; arms that have a price are added."""
    if not body.prices and body.budget is None:
        return body
    if learner.settings.policy.name in specs.SPENDING:
        wrong = "the policy learns what arms cost from the second item of feedback, and has no prices"
        remedy = "name new arms in add, and change spend in the policy of the settings"
        raise invalid("prices" if body.prices else "budget", wrong, remedy)
    if not isinstance(learner.actions, KnapsackSpec) or body.actions is not None:
        remedy = "leave prices and budget out, or have actions knapsack and give none anew"
        raise invalid("prices", "the problem has no knapsack, or actions are given", remedy)
    own = learner.actions.parameters
    costs, limit = own.costs | body.prices, own.budget if body.budget is None else body.budget
    known = set(learner.arms.all)
    add = [*body.add, *(arm for arm in body.prices if arm not in known)]
    return replace(body, add=add, actions=KnapsackSpec(KnapsackParameters(costs, limit)))


def _new_support(learner: ProblemState, add: list[str], body: ArmsBody) -> list[list[int]] | None:
    """The items of each new arm, where arms can touch some items only."""
    sparse = isinstance(learner.problem.support, Sparse)
    if not sparse:
        if body.support is not None:
            raise invalid("support", "every arm may touch every item", "leave it out")
        _fits(len(learner.arms.all) + len(add), learner.problem.n_items)
        return None
    rows = []
    for arm in add:
        if body.support is None or arm not in body.support:
            raise invalid("support", f"nothing for arm {arm!r}", "name the items of every new arm")
        rows.append(sorted(arm_numbers(learner.items, body.support[arm], "support")))
    if learner.problem.n_entries + sum(len(row) for row in rows) > specs.MAX_ENTRIES:
        raise invalid("support", "too many entries", f"a problem has at most {specs.MAX_ENTRIES}")
    return rows


def _new_features(learner: ProblemState, add: list[str], body: ArmsBody) -> list[Any] | None:
    """The features of each new arm, where arms have features."""
    context = learner.problem.context
    if body.features is None and (context is None or not context.arms.size):
        return None
    if context is None:
        raise invalid("features", "the problem has no context", "leave them out")
    known = set(learner.arms.all)
    try:
        rows = each_arm({arm: row for arm, row in (body.features or {}).items() if arm not in known}, add, "features")
        context.with_arms(len(add), rows)
    except InvalidArgument as error:
        raise invalid("features", error.wrong, error.remedy) from None
    return rows


def _gone(learner: ProblemState, arm: int) -> bool:
    return arm < len(learner.retired) and bool(learner.retired[arm])


def plan_items(learner: ProblemState, body: ItemsBody, by: str) -> Itemed | None:
    """Add and retire items; a retired item has the weight 0."""
    if learner.learnt is not None:
        raise invalid("add", "the items of this problem are learnt", "leave them to it")
    weights = [1.0] * len(body.add) if body.weights is None else body.weights
    if len(weights) != len(body.add) or len(set(body.add)) != len(body.add):
        raise invalid("weights", f"{len(weights)} for {len(set(body.add))} new items", "give one weight per item")
    known = set(learner.items.all)
    fresh = [(item, w) for item, w in zip(body.add, weights, strict=True) if item not in known]
    add, weights = [item for item, _ in fresh], [w for _, w in fresh]
    specs.check_new_names(add, "add")
    if len(learner.items.all) + len(add) > specs.MAX_ITEMS:
        raise invalid("add", "too many items", f"a problem has at most {specs.MAX_ITEMS}")
    _fits(learner.problem.n_arms, len(learner.items.all) + len(add))
    retire = [i for i in arm_numbers(learner.items, body.retire, "retire") if i not in learner.learner.retired_items]
    left = np.concatenate([np.delete(learner.problem.weights, retire), weights])
    if not left.any():
        raise invalid("retire", "no item with a weight would be left", "add one, or retire fewer")
    if not add and not retire:
        return None
    if add:
        try:
            with_items(learner.problem, weights)
        except InvalidArgument as error:
            raise invalid("add", error.wrong, error.remedy) from None
    return Itemed(now_ms(), add, weights, retire, by)


def _fits(n_arms: int, n_items: int) -> None:
    if n_arms * n_items > specs.MAX_ENTRIES:
        raise invalid("add", f"{n_arms} arms x {n_items} items", f"a problem has at most {specs.MAX_ENTRIES} entries")


def plan_outcomes(learner: ProblemState, body: PastBody, by: str) -> Warmed | None:
    """Add past outcomes; the same id with the same body counts once."""
    digest = digest_request(body)
    if (known := learner.warmed.get(body.id)) is not None:
        if known != digest:
            raise conflict(f"outcomes {body.id!r} were given before with other values; choose another id")
        return None
    specs.check_new_names([body.id], "id")
    if learner.problem.reward.totals:
        return _past_totals(learner, body, digest)
    if not body.arms:
        raise invalid("arms", "missing", "give arms and outcomes; sets are for the reward total")
    arms = [arm_numbers(learner.arms, [arm], "arms")[0] for arm in body.arms]
    widths = learner.widths(arms) or (learner.problem.n_items,) * len(arms)
    rows = [[UNSEEN if value is None else value for value in row] for row in body.outcomes]
    if body.scores is not None:
        rows = _encode_scores(learner, body, len(arms))
    if tuple(map(len, rows)) != widths:
        raise invalid("outcomes", "wrong shape", f"give {len(arms)} rows, one value per item of each arm")
    context, given = learner.problem.context, cast(Any, body.contexts)
    segments = context.segments(given) if context is not None and given is not None else given
    t = learner.learner.past_round(past(learner.problem, arms, rows, segments))
    return Warmed(now_ms(), body.id, digest, arms, rows, t, segments)


def plan_sums(learner: ProblemState, body: SumsBody, by: str) -> Summed | None:
    """Add integer sums; the same id with the same sums counts once, and with others takes their place."""
    if not (body.rows or body.patterns or body.replace):
        raise invalid("rows", "missing, and no patterns are given", "give either, or replace earlier sums by none")
    body_in_order = replace(body, rows=sorted(body.rows), patterns=sorted(body.patterns), replace=False)
    digest, known = digest_request(body_in_order), learner.summed  # engines give rows in any order
    before = known.kept.get(body.id)
    if known.digests.get(body.id) == digest:
        return None
    if body.id in known.digests and not body.replace:
        raise conflict(f"sums {body.id!r} were given before with other values; choose another id, or replace them")
    if body.id in known.digests and before is None:
        raise conflict(f"sums {body.id!r} are too old to be replaced: the last {KEPT_SUMS} can be")
    if learner.problem.reward.totals:
        raise invalid("rows", "the reward is total: no arm has an outcome", "send sets with their totals as outcomes")
    if learner.learnt is not None or (body.patterns and learner.problem.n_items > 1):
        kind = "learnt" if learner.learnt is not None else "several"
        raise invalid("patterns" if body.patterns else "rows", f"the items of this problem are {kind}", "send outcomes")
    specs.check_new_names([body.id], "id")
    segment_of = segment_numbers(learner.problem)
    rows = [
        (segment_of(segment), _number(learner.arms, arm), _number(learner.items, item), *counts)
        for segment, arm, item, *counts in body.rows
    ]
    patterns = [one for version, own in _by_version(body) for one in learner.published.table(version).read(own)]
    claims = claims_of(learner, patterns)
    event = Summed(now_ms(), body.id, digest, cast(Any, rows), patterns, by=by, claims=claims)
    sums = tally_of(learner, event)
    whole = Tally(learner.problem.support, len(learner.tally))
    for part in (learner.tally, sums):
        whole.add(part)
    if before is not None:
        whole.add(tally_of(learner, before), -1.0)
    whole.require_exact()
    return replace(event, t=learner.learner.past_round(sums))


def _number(names: Names, name: str) -> int:
    """The number of an arm or item; "" where there is one."""
    return 0 if name == "" and len(names.all) == 1 else arm_numbers(names, [name], names.what)[0]


def _by_version(body: SumsBody) -> list[tuple[int, list[Any]]]:
    """The patterns of each version."""
    versions = dict.fromkeys(version for version, *_ in body.patterns)
    return [(one, [pattern for pattern in body.patterns if pattern[0] == one]) for one in versions]


async def publish(coordinator: Coordinator, tenant: str, name: str) -> Table:
    """The table that is in force; another one is published if it is due."""
    state = await coordinator.find(tenant, name)
    if state.settings.serve != "table":
        remedy = 'change the settings to "serve": "table"'
        raise invalid("settings.serve", '"decisions": applications ask for each one', remedy)
    if table_due(state, now_ms()):
        lives = state.settings.table_expires_s
        ends = None if lives is None else (datetime.now(UTC) + timedelta(seconds=lives)).isoformat(timespec="seconds")
        await coordinator.change(tenant, name, lambda state: plan_table(state, name, now_ms(), ends), THREAD_SIZE)
        state = await coordinator.find(tenant, name)
    newest = state.published.newest
    assert newest is not None  # it was published just now, or before
    return newest.table


def _past_totals(learner: ProblemState, body: PastBody, digest: str) -> Warmed:
    if not body.sets or body.arms or body.outcomes:
        raise invalid("sets", "missing, and the reward is total", "give sets, each with arms and a total, and no arms")
    sets = [tuple(sorted(arm_numbers(learner.arms, part.arms, "sets.arms"))) for part in body.sets]
    totals = [(own, part.total, body.n) for own, part in zip(sets, body.sets, strict=True)]
    event = Warmed(now_ms(), body.id, digest, [], [], totals=totals)
    return replace(event, t=learner.learner.past_round(past_of(learner.problem, event)))


def _encode_scores(learner: ProblemState, body: PastBody, n: int) -> list[list[float]]:
    """Past scores as outcomes."""
    scale, scores = learner.problem.thresholds, body.scores or []
    if scale is None or body.outcomes or len(scores) != n:
        wrong = "given beside outcomes, or not one for each arm" if scale is not None else "the problem has none"
        raise invalid("scores", wrong, "give outcomes" if scale is None else f"give {n} scores, and no outcomes")
    missing = [UNSEEN] * learner.problem.n_items
    return [missing if score is None else scale.encode(score).tolist() for score in scores]


log = logging.getLogger("superarm.learning")

LOOK_SECONDS = 0.5
"""How often it is looked whether items are due to be learnt."""


async def learn_regularly(coordinator: Coordinator) -> None:
    """Learn the items of each problem when they are due, as long as the process runs, one problem at a time."""
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        for key, state in list(coordinator.ledger.problems.items()):
            if state.learnt is None or not state.learnt.due:
                continue
            try:
                await learn_items(coordinator, key)
            except (RequestError, StoreUnavailable) as error:
                log.warning("items of problem %r could not be learnt now: %s", key[1], error)
            except Exception:
                log.exception("items of problem %r could not be learnt", key[1])


async def learn_items(coordinator: Coordinator, key: Key, by: str = "") -> bool:
    """Learn the items of a problem anew, and write them as a version; False if another one came in between."""

    def begin(state: ProblemState) -> tuple[int, partial[Items]]:
        learnt = learnt_of(state)
        told, version = list(learnt.counts.told.values()), len(learnt.versions)
        return version, partial(learn_answers, told, learnt.counts.items.arms, version + 1)

    version, learn = await coordinator.read(*key, begin)
    items = await asyncio.to_thread(learn)

    def plan(state: ProblemState) -> Learnt | None:
        learnt = learnt_of(state)
        return learnt.next_version(items, now_ms(), by) if len(learnt.versions) == version else None

    return await coordinator.change(*key, plan)


def plan_earlier_items(state: ProblemState, body: LearnBody, by: str) -> Learnt:
    """The items of an earlier version, as a new one."""
    learnt, version = learnt_of(state), body.version or 0
    if not 1 <= version <= len(learnt.versions):
        raise unknown("version", str(version))
    made = {"at": now_ms(), "version": len(learnt.versions) + 1, "n": len(learnt.counts.told), "by": by}
    return replace(learnt.versions[version - 1], **made, since=learnt.counts.since, of=version)


def learnt_of(state: ProblemState) -> LearntItems:
    """The items that a problem learns, or 422."""
    if state.learnt is None:
        raise invalid("items", "those of this problem are given", 'create one with items: "learn"')
    return state.learnt
