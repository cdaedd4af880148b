// Made from the OpenAPI document by dev/tools/typescript_types.py: do not edit.

/** A decision was shown. */
export interface ActivateBody {
  /** The slate that was shown, if it is another one; an empty list means that none was. */
  shown?: string[] | null;
}

/** What feedback changed. */
export interface AppliedReply {
  /** Whether anything changed. */
  applied: boolean;
  /** Whether it came after the window. */
  late: boolean;
  /** The state of the decision: `open`, `deferred`, `complete`, `expired` or `unshown`. */
  state: string;
}

/** What is known of one arm. */
export interface ArmRow {
  /** Its name. */
  arm: string;
  /** How often it was observed. */
  pulls: number;
  /** In how many decisions it awaits feedback. */
  pending: number;
  /** Whether no new slate may have it. */
  retired: boolean;
  /** How often each item was observed. */
  seen: number[];
  /** The mean of each item; null where nothing was seen. Where the reward is `total`, the effect of the arm: by how much a total is larger, or smaller, than with the mean arm in its place. */
  mean: (number | null)[];
  /** The variance of each item; null where nothing was seen. Where the reward is `total`, that of the effect. */
  variance: (number | null)[];
  /** The names of these items, where the arm can touch some items only. */
  items?: string[];
  /** The mean of its scores, where the problem has `scores`; null if none was told. */
  score?: number | null;
}

/** Arms to add and to retire. */
export interface ArmsBody {
  /** Arms to add; adding a retired arm restores it, with what was learnt about it. */
  add?: string[];
  /** Arms that no new slate may have. */
  retire?: string[];
  /** The action set of all arms: other prices or limits, or what may be done with new arms. */
  actions?: SubsetsSpec | PartitionSpec | LaminarSpec | SlotsSpec | ForestsSpec | SpanningTreesSpec | MatchingSpec | PathsSpec | ExplicitSpec | KnapsackSpec | CopiesSpec | IntersectionSpec | OwnSpec | null;
  /** The items of each new arm, where arms can touch some items only. */
  support?: Record<string, string[]> | null;
  /** The features of each new arm, where arms have features. */
  features?: Record<string, Record<string, number | string | string[] | Record<string, number> | null> | number[]> | null;
  /** New costs of arms of a knapsack; the others keep theirs, and names that are not known are new arms. */
  prices?: Record<string, number>;
  /** The new budget of a knapsack. */
  budget?: number | null;
}

/** A page of arms. */
export interface ArmsReply {
  /** The arms of the page. */
  arms: ArmRow[];
  /** How many arms there are. */
  total: number;
}

/** Ask for a decision; every field may be left out. */
export interface AskBody {
  /** The decision's id, of your choice: the same id and body give the same decision, and it seeds the randomness. */
  id?: string | null;
  /** Only these arms may be in the slate. */
  eligible?: string[] | null;
  /** These arms may not be in the slate. */
  excluded?: string[];
  /** These arms come first in the slate, and the policy chooses the rest. */
  pinned?: string[];
  /** The size of a shorter slate. */
  k?: number | null;
  /** Named slots, each with arms that it may not hold, or with the one that it must hold. */
  slots?: SlotBody[] | null;
  /** The slate that you would show without the policy: the answer in other modes than `online`, and for the control share. */
  baseline?: string[] | null;
  /** Whether the decision counts only after it was activated. */
  deferred?: boolean;
  /** The items that the decision is about: only they are awaited, and feedback on them completes it. */
  items?: string[] | null;
  /** Whom the slate is for, a visitor for instance: its decisions are all of the policy or all of the control. */
  unit?: string | null;
  /** The features of the user. */
  context?: Record<string, number | string | string[] | Record<string, number> | null> | number[] | null;
  /** For each arm the features of the pair of the user and the arm, where the problem has such. */
  pairs?: Record<string, number[]> | null;
  /** What the arms of this decision may cost together, in place of the budget of a knapsack. */
  budget?: number | null;
}

/** Ask for several decisions at once. */
export interface AskManyBody {
  /** The requests, one after the other. */
  decisions: AskBody[];
}

/** One change. */
export interface AuditEntry {
  /** When, in milliseconds since 1970. */
  at: number;
  /** What was changed. */
  what: string;
  /** Of which problem; null for keys. */
  problem: string | null;
  /** The id of the key that did it. */
  by: string;
  /** What it changed. */
  details: Record<string, unknown>;
}

/** A page of changes, newest first. */
export interface AuditReply {
  /** The changes. */
  entries: AuditEntry[];
  /** How many there are. */
  total: number;
}

/** The ranking that is followed from now on. */
export interface BaselineBody {
  /** All arms that are known to be worth showing today, best first; leave out new ones, of which nothing is known. */
  arms: string[];
}

/** A line of bulk feedback. */
export interface BulkLine {
  feedback?: UnitBody[] | null;
  outcome?: ((number | null)[])[] | null;
  seen?: boolean[][] | null;
  amend?: boolean;
  arms?: string[] | null;
  total?: number | null;
  totals?: PartBody[] | null;
  n?: number;
  scores?: Record<string, number | null> | null;
  decision: string;
}

/** Features of users, arms and pairs, and the model that learns from them, as `superarm.Context` takes them. */
export interface ContextSpec {
  /** The features of users. */
  features?: FeaturesSpec;
  /** The model that learns from features. By default {"name":"segments"}. */
  model?: SegmentsSpec | LinearSpec | LogisticSpec;
  /** The features of every arm: values by name as `arm_features` declares them, or numbers in [-1, 1]. */
  arms?: Record<string, Record<string, number | string | string[] | Record<string, number> | null> | number[]> | null;
  /** Which features arms have. */
  arm_features?: FeaturesSpec | null;
  /** Whether products of features of users and arms are used, too. */
  interactions?: boolean;
  /** How many numbers each pair of a user and an arm has. */
  pairs?: number;
  /** What is kept of the context of a decision: as it was `given`, or its `encoded` form alone. */
  stored?: "encoded" | "given";
  /** A categorical feature whose value is the item that a decision is about, if it names no `items`. */
  items_from?: string | null;
}

/** Who gets the control slate. */
export interface Control {
  /** The share of ids that get it. */
  share?: number;
  /** The slate by segment, or for everybody under "". */
  slates?: Record<string, number[][]>;
}

/** How many calls of each arm a slate may have, and what they may cost. */
export interface CopiesParameters {
  /** How many copies there are of each arm; those of `a` are the arms `a#1`, `a#2` and so on. */
  copies: Record<string, number>;
  /** What the copies of a slate may cost together: without `prices`, how many there may be. */
  budget: number;
  /** What a copy of each arm costs. */
  prices?: Record<string, number> | null;
}

/** Several calls of one arm in a slate: copies share what is learnt. */
export interface CopiesSpec {
  /** Which one it is. */
  name: "copies";
  /** Its parameters. */
  parameters: CopiesParameters;
}

/** A decision. */
export interface DecisionReply {
  /** Its id. */
  id: string;
  /** Its problem. */
  problem: string;
  /** The slate: names of arms, in their order. */
  arms: string[];
  /** The numbers of these arms. */
  action: number[];
  /** The round that it was made for. */
  t: number;
  /** The version of the settings under which it was made. */
  version: number;
  /** `open`, `deferred`, `complete`, `expired` or `unshown`. */
  state: string;
  /** Whether this request made it; false if it was made before. */
  created?: boolean;
  /** The chance of each arm in its slot, given the slots before. */
  propensities?: number[] | null;
  /** The slate that the policy would have shown, where another one is shown. */
  policy_arms?: string[] | null;
  /** The names of the slots. */
  slots?: string[] | null;
  /** The items that it is about, if it named some. */
  items?: string[] | null;
  /** The chance of each arm to be in the slate, in any slot. */
  inclusion?: number[] | null;
  /** `policy` or `control`, if it is part of their comparison. */
  group?: string;
  /** Whether the guardrail let the control slate be shown. */
  fallback?: boolean;
  /** The context as it was given, unless only its encoded form is stored. */
  context?: Record<string, number | string | string[] | Record<string, number> | null> | number[] | null;
  /** The number of the segment of its context. */
  segment?: number | null;
  /** The scores that were told of its arms, where the problem has `scores`. */
  scores?: Record<string, number> | null;
}

/** Several decisions, in the order of the requests; an error takes the place of a decision that was refused. */
export interface DecisionsReply {
  /** The decisions and errors. */
  decisions: (DecisionReply | ErrorReply)[];
}

/** A comparison that ended when the control slate or the items changed. */
export interface EarlierLift {
  /** Only decisions after this round were compared. */
  since: number;
  /** The last of these rounds. */
  until: number;
  /** The control slate of that time, as in the settings. */
  control_slate: string | string[];
  /** Decisions that showed what the policy chose. */
  policy: GroupReply;
  /** Decisions that showed the control slate. */
  control: GroupReply;
  /** The mean of the policy minus that of the control; null if one of them is not known. */
  difference: IntervalReply | null;
  /** The difference as a share of the control's mean; null if that may be 0. */
  relative: IntervalReply | null;
  /** `better`, `worse` or `open`. */
  verdict: string;
  /** How the intervals were made: `large` by the central limit theorem, `bounded` by the largest reward that there can be, `planned` for the planned end alone. */
  method: string;
  /** About how many more decisions decide, if the difference stays what it is; 0 if it is decided, null if that cannot be said. Of a planned comparison, how many are awaited until it speaks. */
  needed: number | null;
  /** About how many decisions would, with a control share of a half. */
  needed_at_half: number | null;
  /** The result in a sentence. */
  said: string;
}

/** The mean reward of the policy's newest decisions, beside what the estimates predicted for the same slates. */
export interface EarnedReply {
  /** The mean reward of the newest quarter of finished decisions. */
  realised: number;
  /** What the estimates predicted for their slates when they finished; null where that is not known. */
  estimated: number | null;
  /** Realised minus estimated. */
  difference: number | null;
  /** The lower end of the 95 % interval of the difference, for one reading. */
  low: number | null;
  /** Its upper end. */
  high: number | null;
  /** What to do where the two part; empty where they agree. */
  warning: string;
}

/** The two nodes that every arm, an edge, connects. */
export interface EdgesParameters {
  /** For every arm, an edge, the two nodes that it connects. */
  edges: Record<string, string[]>;
}

/** How many decisions were erased. */
export interface ErasedReply {
  /** Their problem. */
  problem: string;
  /** How many decisions were erased. */
  erased: number;
}

/** Erase all decisions of a unit. */
export interface ErasureBody {
  /** The unit that they were asked for with. */
  unit: string;
}

/** Why nothing was done. */
export interface ErrorBody {
  /** The kind of error, for programs. */
  code: string;
  /** What was wrong and what would be right, for people. */
  message: string;
}

/** Why nothing was done. */
export interface ErrorReply {
  /** The error. */
  error: ErrorBody;
}

/** An arm of a slate, and why it was chosen. */
export interface ExplainedArmReply {
  /** Its name. */
  arm: string;
  /** Its estimated parameters, one per item that it can touch. */
  estimate: number[];
  /** The parameters that the policy hoped for, or drew. */
  optimistic: number[];
  /** What it added to the arms before it, at the parameters that were hoped for. */
  gain: number;
  /** What it added at the estimates. */
  estimated_gain: number;
  /** The features that mattered most. */
  features: FeatureEffect[];
}

/** Why these arms, by what is known now; a pending decision as if it was not made yet. */
export interface ExplanationReply {
  /** The decision's id. */
  id: string;
  /** Its problem. */
  problem: string;
  /** The arms in the order of picking. */
  arms: ExplainedArmReply[];
  /** What they are worth together, where the reward is `total`: the estimates of arms are their shares of it. */
  worth?: WorthReply;
}

/** The slates, each a list of arms. */
export interface ExplicitParameters {
  /** The slates, each a list of arms. */
  batches: string[][];
}

/** The slates of a list, and no others; `batches` of the problem is the short form. */
export interface ExplicitSpec {
  /** Which one it is. */
  name: "explicit";
  /** Its parameters. */
  parameters: ExplicitParameters;
}

/** Arms of which a slate may have at most `limit`. */
export interface Family {
  /** The arms of the family. */
  arms: string[];
  /** How many of them a slate may have. */
  limit: number;
}

/** What a feature adds to the estimate of an arm. */
export interface FeatureEffect {
  /** The feature. */
  feature: string;
  /** What it adds to the estimated mean; of a logistic model, to its log-odds. */
  effect: number;
}

/** Which features there are, as `superarm.Features` declares them. */
export interface FeaturesSpec {
  /** Numeric features by name, with their ranges; one without a range is standardised. */
  numeric?: Record<string, number[] | null>;
  /** Categorical features by name, with their values. */
  categorical?: Record<string, string[]>;
  /** Features that are words, by name, with the number of coordinates that they are hashed to. */
  hashed?: Record<string, number>;
  /** The names of features that may be missing. */
  missing?: string[];
  /** In place of all others: features are that many numbers in [-1, 1]. */
  d?: number;
}

/** Edges that create no cycle. */
export interface ForestsSpec {
  /** Which one it is. */
  name: "forests";
  /** Its parameters. */
  parameters: EdgesParameters;
}

/** The finished decisions of a group. */
export interface GroupReply {
  /** How many there are. */
  decisions: number;
  /** Their mean reward; null before the first. */
  mean: IntervalReply | null;
}

/** The rules. */
export interface IntersectionParameters {
  /** Action sets `subsets`, `partition`, `laminar` and `slots`: a slate is allowed by all of them. */
  rules: (SubsetsSpec | PartitionSpec | LaminarSpec | SlotsSpec)[];
}

/** Slates that several rules allow at once: by brand, by category, and in number. */
export interface IntersectionSpec {
  /** Which one it is. */
  name: "intersection";
  /** Its parameters. */
  parameters: IntersectionParameters;
}

/** An estimate with the ends of its interval, which holds at all times: it may be looked at every day. */
export interface IntervalReply {
  /** The estimate. */
  value: number;
  /** The lower end. */
  low: number;
  /** The upper end. */
  high: number;
}

/** Items to add and to retire. */
export interface ItemsBody {
  /** Items to add. */
  add?: string[];
  /** Their weights; 1 each by default. */
  weights?: number[] | null;
  /** Items that count no longer. */
  retire?: string[];
}

/** The items of a problem. */
export interface ItemsReply {
  /** Whether the problem learns them itself. */
  learn: boolean;
  /** The names of the items of feedback. */
  items: string[];
  /** Whether groups of visitors should be served by items, in a sentence; empty where that is not asked. */
  said: string;
  /** How many decisions items are learnt from. */
  decisions: number;
  /** From how many decisions on they are learnt anew. */
  next_at: number;
  /** The groups of visitors that slates serve now, the largest first. */
  classes: VisitorClass[];
  /** All versions, the newest last. */
  versions: ItemsVersion[];
  /** The mean reward of the newest finished decisions: the share of visitors who liked something, if outcomes are 0 or 1. */
  realised: number | null;
  /** What the estimates predicted for the same slates, for all visitors together. */
  claimed: number | null;
}

/** A version of items that were learnt. */
export interface ItemsVersion {
  /** Its number, counted from 1. */
  version: number;
  /** When it was written, in milliseconds since 1970. */
  at: number;
  /** How many groups of visitors it has. */
  classes: number;
  /** How many decisions counted then. */
  decisions: number;
  /** By how many standard errors so many groups explain held-out visitors better than one. */
  z: number;
  /** The earlier version that it repeats; 0 if it was learnt. */
  of: number;
}

/** What every arm costs, and what a slate may cost. */
export interface KnapsackParameters {
  /** What every arm costs. */
  costs: Record<string, number>;
  /** What a slate may cost. */
  budget: number;
}

/** Arms whose costs add up to at most a budget. */
export interface KnapsackSpec {
  /** Which one it is. */
  name: "knapsack";
  /** Its parameters. */
  parameters: KnapsackParameters;
}

/** Families that are nested or disjoint. */
export interface LaminarParameters {
  /** The families, which are nested or disjoint. */
  families: Family[];
}

/** At most so many arms of each family, where families are nested or disjoint. */
export interface LaminarSpec {
  /** Which one it is. */
  name: "laminar";
  /** Its parameters. */
  parameters: LaminarParameters;
}

/** Which items a problem that learns them should have. */
export interface LearnBody {
  /** An earlier version, to return to; without it, items are learnt anew from all decisions. */
  version?: number | null;
}

/** The reward with the policy against that of the control share. All intervals hold together, at all times, with probability 1 - `delta`. */
export interface LiftReply {
  /** The share of decisions that show the control slate. */
  share: number;
  /** The chance that an interval is ever wrong. */
  delta: number;
  /** Only decisions after this round are compared. */
  since: number;
  /** Decisions that show what the policy chose. */
  policy: GroupReply;
  /** Decisions that show the control slate. */
  control: GroupReply;
  /** The mean of the policy minus that of the control; null until both are known. */
  difference: IntervalReply | null;
  /** The difference as a share of the control's mean; null while that may be 0. */
  relative: IntervalReply | null;
  /** `better`, `worse` or `open`. */
  verdict: string;
  /** How many decisions finished without a reward that can be compared. */
  left_out: number;
  /** Whether the guardrail shows the control slate. */
  fallback: boolean;
  /** How the intervals were made: `large` by the central limit theorem, `bounded` by the largest reward that there can be, `planned` for the planned end alone. */
  method: string;
  /** About how many more decisions decide, if the difference stays what it is; 0 if it is decided, null if that cannot be said. Of a planned comparison, how many are awaited until it speaks. */
  needed: number | null;
  /** About how many decisions would, with a control share of a half. */
  needed_at_half: number | null;
  /** The item or the segment that is compared; null for the whole reward of all decisions. */
  item?: string | null;
  /** What the policy earns, beside what was estimated; null before the first decision has finished. */
  earned?: EarnedReply | null;
  /** Why the difference is null, and when the first window ends; empty if it is known. */
  missing?: string;
  /** The comparisons before this one, the newest first. */
  earlier?: EarlierLift[];
  /** The result in a sentence. */
  said?: string;
}

/** Parameters that are linear in the features, learnt by ridge regression. */
export interface LinearSpec {
  /** Which one it is. */
  name: "linear";
  /** Its parameters. */
  parameters?: RegressionParameters;
}

/** The parameters of a logistic model. */
export interface LogisticParameters {
  /** Which entries share parameters: none (false), those of an arm (`arms`), or all (true). */
  shared?: boolean | "arms";
  /** Whether a constant is added to the features. */
  intercept?: boolean;
  /** The mean that is expected before anything is observed. */
  prior_mean?: number;
  /** How many observations are kept for refits. */
  kept?: number;
}

/** Log-odds that are linear in the features. */
export interface LogisticSpec {
  /** Which one it is. */
  name: "logistic";
  /** Its parameters. */
  parameters?: LogisticParameters;
}

/** Pairs (left, right), each node in at most one of them; the two sides have names of their own. */
export interface MatchingSpec {
  /** Which one it is. */
  name: "matching";
  /** Its parameters. */
  parameters: EdgesParameters;
}

/** The names of all problems. */
export interface NamesReply {
  /** Their names. */
  problems: string[];
}

/** An action set that the operator added, and its numbers. */
export interface OwnParameters {
  /** The name under which it was added. */
  kind: string;
  /** Its parameters by name; those that are left out have their defaults. */
  numbers?: Record<string, number>;
}

/** An action set that a module of the operator added (`serve --import`). */
export interface OwnSpec {
  /** Which one it is. */
  name: "own";
  /** Its parameters. */
  parameters: OwnParameters;
}

/** A part of a slate, of which only the total is known. */
export interface PartBody {
  /** The arms of the part. */
  arms: string[];
  /** What they did together, from 0 to 1. */
  total: number;
}

/** The group of every arm, and how many arms of each group a slate may have. */
export interface PartitionParameters {
  /** The group of every arm. */
  groups: Record<string, string>;
  /** How many arms of each group a slate may have; beside `k`, groups may be left out. */
  limits?: Record<string, number>;
  /** How many arms a slate has; without it, only the groups limit it. */
  k?: number | null;
  /** How many arms of a group a slate has at least; needs `k`. */
  minimums?: Record<string, number>;
}

/** At most, and at least, so many arms of each group. */
export interface PartitionSpec {
  /** Which one it is. */
  name: "partition";
  /** Its parameters. */
  parameters: PartitionParameters;
}

/** Outcomes, or totals of sets, without a decision, for a warm start. */
export interface PastBody {
  /** An id of your choice: the same id and body count once. */
  id: string;
  /** The arm of each row. */
  arms?: string[];
  /** One row per arm, one value per item; null where nothing was seen. */
  outcomes?: ((number | null)[])[];
  /** Where the reward is `total`, the sets that were shown, in place of `arms`: each with its total. */
  sets?: PartBody[];
  /** Of how many trials each total is the mean. */
  n?: number;
  /** With segments, the context of each row, as a request for a decision has it, or the name of its segment. */
  contexts?: (Record<string, unknown> | string)[] | null;
  /** Where the problem has `scores`, one for each of `arms`, in place of `outcomes`; null is none. */
  scores?: (number | null)[] | null;
}

/** The nodes that every arm, a directed edge, leads from and to, and the ends of all paths. */
export interface PathsParameters {
  /** For every arm, a directed edge, the nodes that it leads from and to. */
  edges: Record<string, string[]>;
  /** Where paths begin. */
  source: string;
  /** Where paths end. */
  target: string;
}

/** The paths from a source to a target in a directed graph without cycles. */
export interface PathsSpec {
  /** Which one it is. */
  name: "paths";
  /** Its parameters. */
  parameters: PathsParameters;
}

/** Another policy, or other parameters of the current one. */
export interface PolicyChange {
  /** The name of the policy; without it, a new problem takes what is recommended for its kind. */
  name?: string;
  /** Its parameters by name; those that are left out have their defaults. */
  parameters?: Record<string, number>;
  /** For environments that change: only so many of the last rounds are used. */
  window?: number | null;
  /** For environments that change: the weight of a round halves every so many rounds. */
  half_life?: number | null;
  /** Your ranking of arms, best first: `pooled_thompson` starts from the first ones, and expects less of the next. */
  baseline?: string[] | null;
  /** What learning may cost beside that ranking: `careful` for a short time, `normal`, `bold` for a long one. */
  caution?: "bold" | "careful" | "normal" | null;
}

/** A policy of the catalogue by its name, with its parameters. */
export interface PolicySpec {
  /** The name of the policy; without it, a new problem takes what is recommended for its kind. */
  name?: string;
  /** Its parameters by name; those that are left out have their defaults. */
  parameters?: Record<string, number>;
  /** For environments that change: only so many of the last rounds are used. */
  window?: number;
  /** For environments that change: the weight of a round halves every so many rounds. */
  half_life?: number;
  /** Your ranking of arms, best first: `pooled_thompson` starts from the first ones, and expects less of the next. */
  baseline?: string[];
  /** What learning may cost beside that ranking: `careful` for a short time, `normal`, `bold` for a long one. */
  caution?: "bold" | "careful" | "normal";
}

/** The current state of a problem. */
export interface ProblemReply {
  /** Its name. */
  name: string;
  /** How many arms there are, retired ones included. */
  n_arms: number;
  /** How many items there are. */
  n_items: number;
  /** The size of the largest slate. */
  k: number;
  /** How many decisions were made and not erased. */
  decisions: number;
  /** How many of them await feedback. */
  pending: number;
  /** The current version of the settings, counted from 1. */
  version: number;
  /** The current settings. */
  settings: Settings;
  /** The names of the items. */
  items: string[];
  /** The weights of the items; 0 for retired ones. */
  weights: number[];
  /** What its owner should look at, a sentence each. */
  warnings?: string[];
  /** The last round that a decision was made for. */
  t?: number;
  /** Why its policy is recommended for such a problem; left out if another one was chosen. */
  reason?: string;
  /** The scale of its scores, where it has any: `items` are the upper edges of its bins. */
  scores?: ScoresSpec;
  /** Its action set, with prices and budget for instance; left out where any `k` arms are a slate. */
  actions?: SubsetsSpec | PartitionSpec | LaminarSpec | SlotsSpec | ForestsSpec | SpanningTreesSpec | MatchingSpec | PathsSpec | ExplicitSpec | KnapsackSpec | CopiesSpec | IntersectionSpec | OwnSpec;
}

/** The description of a problem: arms, items, reward, which slates may be shown, and the settings. */
export interface ProblemSpec {
  /** The names of all arms: what slates are made of, products for instance. */
  arms: string[];
  /** The names of all items: what an arm may succeed with, segments of customers for instance. `learn`: outcomes are about arms alone, and the groups of visitors that slates should serve are learnt from the decisions. */
  items?: string[] | "learn";
  /** How much each item counts in the reward; 1 each by default. */
  weights?: number[] | null;
  /** What a slate is worth. */
  reward?: RewardSpec;
  /** Slates have k arms, any of them: the short form of the action set `subsets`. */
  k?: number;
  /** The slates that may be shown, each a list of arms: the short form of the action set `explicit`. */
  batches?: string[][] | null;
  /** The settings, which can be changed later. */
  settings?: Settings;
  /** A seed for everything random; a random one by default. */
  seed?: number | null;
  /** Which slates may be shown, in place of `k` and `batches`. */
  actions?: SubsetsSpec | PartitionSpec | LaminarSpec | SlotsSpec | ForestsSpec | SpanningTreesSpec | MatchingSpec | PathsSpec | ExplicitSpec | KnapsackSpec | CopiesSpec | IntersectionSpec | OwnSpec | null;
  /** For every arm the items that it can touch; without it, every arm may touch every item. */
  support?: Record<string, string[]> | null;
  /** Whether showing a slate may trigger other arms, so that feedback may be about arms outside of the slate. */
  triggered?: boolean;
  /** What is known of users and arms, and the model that learns from it. */
  context?: ContextSpec | null;
  /** The scale of scores, in place of `items`: arms are told scores, and a slate is worth the best of them. */
  scores?: ScoresSpec | null;
}

/** The parameters of a linear model. */
export interface RegressionParameters {
  /** Which entries share parameters: none (false), those of an arm (`arms`), or all (true). */
  shared?: boolean | "arms";
  /** Whether a constant is added to the features. */
  intercept?: boolean;
}

/** The reward (what a slate is worth) by its name, with its parameters. */
export interface RewardSpec {
  /** The name of the reward; a refusal lists them. */
  name?: string;
  /** Its parameters by name; those that are left out have their defaults. */
  parameters?: Record<string, number>;
}

/** The scale of scores, of which the best one of a slate counts. Scores beyond its ends count as these. */
export interface ScoresSpec {
  /** The lowest score. */
  low?: number | null;
  /** The highest score. */
  high?: number | null;
  /** Into how many bins of one width the scale is cut. */
  bins?: number;
  /** The edges of the bins, increasing, in place of `low`, `high` and `bins`. */
  edges?: number[] | null;
  /** What a best score at each edge is worth, if that is not the score. */
  utility?: number[] | null;
}

/** How users are divided. */
export interface SegmentsParameters {
  /** The categorical features that make the segments; all by default. */
  by?: string[];
  /** How many observations of all segments together count in each of them. */
  pooling?: number;
}

/** One tally per segment of users. */
export interface SegmentsSpec {
  /** Which one it is. */
  name: "segments";
  /** Its parameters. */
  parameters?: SegmentsParameters;
}

/** The settings, which can be changed while the counters are kept; each change is a new version in the log. */
export interface Settings {
  /** The policy that chooses slates. */
  policy?: PolicySpec;
  /** `online`: the policy chooses. `apprentice`: the answer is the caller's baseline, and the policy learns. `logging_only`: the answer is the baseline, and nothing is learnt. */
  mode?: "apprentice" | "logging_only" | "online";
  /** The share of slots drawn at random, with logged propensities. */
  explore?: number;
  /** How many seconds feedback is awaited; null for no limit. */
  window_s?: number | null;
  /** What entries without feedback count as when the window ends: a number, or `ignore` for not at all. */
  at_window_end?: number | "ignore";
  /** What happens to feedback after the end of the window: `ignore` only logs it, `learn` counts it. */
  late?: "ignore" | "learn";
  /** How many decisions may await feedback; further ones are refused with 429. */
  max_pending?: number;
  /** How many further slates are drawn with a decision to count how likely its arms were, where no formula is known. */
  propensity_draws?: number;
  /** The share of decisions that show the control slate, to compare the policy with it. */
  control?: number;
  /** What they show: the `baseline`, which is that of the request, or else the first arms of `policy.baseline`; a `uniform` slate; or a slate by the names of its arms. The next arms of `policy.baseline` stand in for those that are retired, paused or excluded. */
  control_slate?: "baseline" | "uniform" | string[];
  /** The share of the control slate's earnings that may be lost: the policy is shown only while it has surely earned the rest. */
  guardrail?: number | null;
  /** How many decisions each worker makes per second on average, and twice as many at once. */
  max_per_second?: number;
  /** What people call arms, items and outcomes. */
  words?: Words;
  /** Whether entries count as `at_window_end` from the start, until feedback replaces it; if false, they are pending until the window ends. */
  provisional?: boolean;
  /** Arms that no slate has before a date, such as products that are sold out: ISO 8601 with a time zone, by arm. */
  paused_until?: Record<string, string>;
  /** `decisions`: each one is asked for. `table`: applications decide from published tables. */
  serve?: "decisions" | "table";
  /** How many slates a table has for each segment: a power of two. */
  table_rows?: 16 | 32 | 64 | 128 | 256 | 512 | 1024;
  /** After how many seconds a table may be used no more; null for no limit. */
  table_expires_s?: number | null;
  /** The planned end of the comparison with the control share: after so many decisions, or a date (ISO 8601 with a time zone). Then it speaks once, with a narrower interval. Null: look as often as you like. */
  planned?: number | string | null;
}

/** Settings to change; what is left out stays. */
export interface SettingsBody {
  /** The policy that chooses slates. */
  policy?: PolicyChange;
  /** `online`: the policy chooses. `apprentice`: the answer is the caller's baseline, and the policy learns. `logging_only`: the answer is the baseline, and nothing is learnt. */
  mode?: "apprentice" | "logging_only" | "online";
  /** The share of slots drawn at random, with logged propensities. */
  explore?: number;
  /** How many seconds feedback is awaited; null for no limit. */
  window_s?: number | null;
  /** What entries without feedback count as when the window ends: a number, or `ignore` for not at all. */
  at_window_end?: number | "ignore";
  /** What happens to feedback after the end of the window: `ignore` only logs it, `learn` counts it. */
  late?: "ignore" | "learn";
  /** How many decisions may await feedback; further ones are refused with 429. */
  max_pending?: number;
  /** How many further slates are drawn with a decision to count how likely its arms were, where no formula is known. */
  propensity_draws?: number;
  /** The share of decisions that show the control slate, to compare the policy with it. */
  control?: number;
  /** What they show: the `baseline`, which is that of the request, or else the first arms of `policy.baseline`; a `uniform` slate; or a slate by the names of its arms. The next arms of `policy.baseline` stand in for those that are retired, paused or excluded. */
  control_slate?: "baseline" | "uniform" | string[];
  /** The share of the control slate's earnings that may be lost: the policy is shown only while it has surely earned the rest. */
  guardrail?: number | null;
  /** How many decisions each worker makes per second on average, and twice as many at once. */
  max_per_second?: number | null;
  /** What people call arms, items and outcomes. */
  words?: Words | null;
  /** Whether entries count as `at_window_end` from the start, until feedback replaces it; if false, they are pending until the window ends. */
  provisional?: boolean;
  /** Arms that no slate has before a date, such as products that are sold out: ISO 8601 with a time zone, by arm. */
  paused_until?: Record<string, string> | null;
  /** `decisions`: each one is asked for. `table`: applications decide from published tables. */
  serve?: "decisions" | "table";
  /** How many slates a table has for each segment: a power of two. */
  table_rows?: 16 | 32 | 64 | 128 | 256 | 512 | 1024;
  /** After how many seconds a table may be used no more; null for no limit. */
  table_expires_s?: number | null;
  /** The planned end of the comparison with the control share: after so many decisions, or a date (ISO 8601 with a time zone). Then it speaks once, with a narrower interval. Null: look as often as you like. */
  planned?: number | string | null;
}

/** A named slot of the slate. */
export interface SlotBody {
  /** The name of the slot. */
  id: string;
  /** Arms that it may not hold. */
  excluded?: string[];
  /** The arm that it must hold. */
  pinned?: string | null;
}

/** For every slot the arms that it may hold. */
export interface SlotsParameters {
  /** For every slot, by its name, the arms that it may hold. */
  slots: Record<string, string[]>;
}

/** Arms in distinct slots, where every slot says which arms it may hold. */
export interface SlotsSpec {
  /** Which one it is. */
  name: "slots";
  /** Its parameters. */
  parameters: SlotsParameters;
}

/** The spanning trees of a connected graph. */
export interface SpanningTreesSpec {
  /** Which one it is. */
  name: "spanning_trees";
  /** Its parameters. */
  parameters: EdgesParameters;
}

/** Slates have `k` arms. */
export interface SubsetsParameters {
  /** How many arms a slate has. */
  k: number;
}

/** Any `k` arms; `k` of the problem is the short form. */
export interface SubsetsSpec {
  /** Which one it is. */
  name: "subsets";
  /** Its parameters. */
  parameters: SubsetsParameters;
}

/** Integer sums of outcomes without a decision, as the statement of `superarm learn --sql` makes them. */
export interface SumsBody {
  /** An id of your choice, such as that of a day: the same id and body count once. */
  id: string;
  /** Segment ("" without segments), arm and item ("" if there is one), then in how many decisions something of the arm was seen, in how many the item was, and the sums of outcomes and their squares in units of 2^-24. */
  rows?: ((string | number)[])[];
  /** How often rows of a published table were shown with the same clicks: its version, segment, row (-1 for the control slate), a bit for each place that was clicked, and how often. */
  patterns?: ((number | string)[])[];
  /** Whether these sums take the place of earlier ones with the same id. */
  replace?: boolean;
}

/** Slates by segment, to decide from: `Agent.publish()` makes one, `Table.load` reads one. */
export interface Table {
  /** What it is for. */
  problem: string;
  /** Of two versions the larger number is newer, whichever arrived last. */
  version: number;
  /** What is hashed before an id. It holds the version, so that an id gets another row in every version. */
  salt: string;
  /** The names of all arms; slates hold their numbers. */
  arms: string[];
  /** The size of the largest slate. */
  k: number;
  /** The rows of each segment, and those of everybody else under "". */
  slates: Record<string, number[][]>;
  /** The features whose levels are the segments. */
  by?: string;
  /** Who gets the control slate. */
  control?: Control;
  /** How many decisions it should serve at most. */
  lifetime?: number;
  /** Until when it may be used, as ISO 8601; null for no limit. Nothing here reads a clock. */
  expires?: string | null;
  /** The version of this format. */
  format?: number;
  /** The SHA-256 of the document with an empty `digest`. */
  digest?: string;
}

/** Feedback of a decision: `feedback`, `outcome`, `total`, `totals` or `scores`. */
export interface TellBody {
  /** What single arms did. */
  feedback?: UnitBody[] | null;
  /** One row per arm of the slate, one value per item that the arm can touch; null stays pending. */
  outcome?: ((number | null)[])[] | null;
  /** In the shape of `outcome`: false for what was not observed and will not be. */
  seen?: boolean[][] | null;
  /** Whether values replace earlier ones. Otherwise a larger value does, and any other one is refused with 409. */
  amend?: boolean;
  /** The arms of the rows of `outcome`, where they are others than the slate's. */
  arms?: string[] | null;
  /** What the slate did as a whole, from 0 to 1, where the reward is `total`. */
  total?: number | null;
  /** What parts of the slate did, which have no arm in common; parts that are not named stay pending. */
  totals?: PartBody[] | null;
  /** Of how many trials each total is the mean. */
  n?: number;
  /** Where the problem has `scores`, that of each arm, in its own units; null: there is none, and will be none. */
  scores?: Record<string, number | null> | null;
}

/** What one arm did: a `value`, or `seen: false`. */
export interface UnitBody {
  /** The arm. */
  arm: string;
  /** The item that it is about; without it, all items of the decision. */
  item?: string | null;
  /** What was observed, from 0 to 1. */
  value?: number | null;
  /** False if it was not observed, and will not be. */
  seen?: boolean;
}

/** All versions of the settings; the last one is the current one. */
export interface VersionsReply {
  /** The settings, from the first version to the current one. */
  versions: Settings[];
}

/** A group of visitors that was found. */
export interface VisitorClass {
  /** The share of visitors who belong to it. */
  share: number;
  /** The mean rate at which they like arms. */
  rate: number;
  /** The arms that they like more than others do, the most telling first. */
  arms: string[];
}

/** What the owner of a problem calls its parts, in the singular; the console, warnings and exports use these words. A plural that does not end in s is given after a stroke: `"person/people"`. `unit` is that of rewards. */
export interface Words {
  /** One arm, such as product. */
  arm?: string;
  /** One item, such as segment. */
  item?: string;
  /** What an arm does for an item, such as click. */
  outcome?: string;
  /** One decision, such as view. */
  decision?: string;
  /** The arms that are shown together, such as page. */
  slate?: string;
  /** The unit of rewards, such as €; empty for none. */
  unit?: string;
}

/** What a slate is worth by a model of totals: ±2 deviations, about 95 % sure as far as arms add up. */
export interface WorthReply {
  /** The estimate. */
  value: number;
  /** Two deviations less. */
  low: number;
  /** Two deviations more. */
  high: number;
}

/** What each operation takes and gives, by its name. */
export interface Operations {
  put_problem: { given: { path: { name: string }; body: ProblemSpec }; reply: ProblemReply };
  get_problem: { given: { path: { name: string } }; reply: ProblemReply };
  delete_problem: { given: { path: { name: string } }; reply: ErasedReply };
  get_problems: { given: {  }; reply: NamesReply };
  get_audit: { given: { query: { offset?: number; limit?: number; problem?: string } }; reply: AuditReply };
  get_arms: { given: { path: { name: string }; query: { offset?: number; limit?: number } }; reply: ArmsReply };
  post_arms: { given: { path: { name: string }; body: ArmsBody }; reply: ProblemReply };
  post_outcomes: { given: { path: { name: string }; body: PastBody }; reply: AppliedReply };
  post_sums: { given: { path: { name: string }; body: SumsBody }; reply: AppliedReply };
  post_items: { given: { path: { name: string }; body: ItemsBody }; reply: ProblemReply };
  get_items: { given: { path: { name: string } }; reply: ItemsReply };
  learn_items: { given: { path: { name: string }; body: LearnBody }; reply: ItemsReply };
  patch_settings: { given: { path: { name: string }; body: SettingsBody }; reply: ProblemReply };
  put_baseline: { given: { path: { name: string }; body: BaselineBody }; reply: ProblemReply };
  get_table: { given: { path: { name: string } }; reply: Table };
  get_versions: { given: { path: { name: string } }; reply: VersionsReply };
  restore_version: { given: { path: { name: string; version: number } }; reply: ProblemReply };
  get_lift: { given: { path: { name: string }; query: { delta?: number; item?: string } }; reply: LiftReply };
  post_decision: { given: { path: { name: string }; body: AskBody }; reply: DecisionReply };
  post_decisions: { given: { path: { name: string }; body: AskManyBody }; reply: DecisionsReply };
  get_decision: { given: { path: { name: string; id: string } }; reply: DecisionReply };
  erase_decision: { given: { path: { name: string; id: string } }; reply: ErasedReply };
  get_explanation: { given: { path: { name: string; id: string }; query: { most?: number } }; reply: ExplanationReply };
  post_feedback: { given: { path: { name: string; id: string }; body: TellBody }; reply: AppliedReply };
  post_activation: { given: { path: { name: string; id: string }; body: ActivateBody }; reply: AppliedReply };
  post_bulk: { given: { path: { name: string }; body: string }; reply: string };
  erase_unit: { given: { path: { name: string }; body: ErasureBody }; reply: ErasedReply };
  health: { given: {  }; reply: Record<string, unknown> };
}

/** The method and the path of each operation. */
export const OPERATIONS = {
  put_problem: ["PUT", "/v1/problems/{name}"],
  get_problem: ["GET", "/v1/problems/{name}"],
  delete_problem: ["DELETE", "/v1/problems/{name}"],
  get_problems: ["GET", "/v1/problems"],
  get_audit: ["GET", "/v1/audit"],
  get_arms: ["GET", "/v1/problems/{name}/arms"],
  post_arms: ["POST", "/v1/problems/{name}/arms"],
  post_outcomes: ["POST", "/v1/problems/{name}/outcomes"],
  post_sums: ["POST", "/v1/problems/{name}/sums"],
  post_items: ["POST", "/v1/problems/{name}/items"],
  get_items: ["GET", "/v1/problems/{name}/items"],
  learn_items: ["POST", "/v1/problems/{name}/items/learn"],
  patch_settings: ["PATCH", "/v1/problems/{name}/settings"],
  put_baseline: ["PUT", "/v1/problems/{name}/baseline"],
  get_table: ["GET", "/v1/problems/{name}/table"],
  get_versions: ["GET", "/v1/problems/{name}/versions"],
  restore_version: ["POST", "/v1/problems/{name}/versions/{version}/restore"],
  get_lift: ["GET", "/v1/problems/{name}/lift"],
  post_decision: ["POST", "/v1/problems/{name}/decisions"],
  post_decisions: ["POST", "/v1/problems/{name}/decisions/bulk"],
  get_decision: ["GET", "/v1/problems/{name}/decisions/{id}"],
  erase_decision: ["DELETE", "/v1/problems/{name}/decisions/{id}"],
  get_explanation: ["GET", "/v1/problems/{name}/decisions/{id}/explanation"],
  post_feedback: ["POST", "/v1/problems/{name}/decisions/{id}/feedback"],
  post_activation: ["POST", "/v1/problems/{name}/decisions/{id}/activate"],
  post_bulk: ["POST", "/v1/problems/{name}/feedback/bulk"],
  erase_unit: ["POST", "/v1/problems/{name}/erasures"],
  health: ["GET", "/health"],
} as const;
