// The bodies and replies of the HTTP interface. A test compares the names of the fields with /openapi.json.

/** Features by name, or as a list of numbers. */
export type Features = Record<string, number | string | boolean> | number[];

/** A component by its name, with its parameters. */
export interface RewardSpec {
  name: string;
  parameters?: Record<string, number>;
}

/** A policy; `window` or `half_life`, in rounds, for environments that change. */
export interface PolicySpec {
  name?: string;
  parameters?: Record<string, number>;
  window?: number | null;
  half_life?: number | null;
}

export interface Words {
  arm?: string;
  item?: string;
  outcome?: string;
  decision?: string;
  slate?: string;
  unit?: string;
}

export interface Settings {
  policy?: PolicySpec;
  mode?: "online" | "apprentice" | "logging_only";
  explore?: number;
  window_s?: number | null;
  at_window_end?: number | "ignore";
  late?: "ignore" | "learn";
  max_pending?: number;
  max_per_second?: number | null;
  propensity_draws?: number;
  control?: number;
  control_slate?: string[] | "baseline" | "uniform" | null;
  guardrail?: number | null;
  words?: Words | null;
}

export interface ProblemSpec {
  arms: string[];
  items: string[];
  weights?: number[] | null;
  k?: number | null;
  batches?: string[][] | null;
  actions?: { name: string; parameters?: Record<string, unknown> } | null;
  reward?: RewardSpec;
  support?: Record<string, string[]> | null;
  triggered?: boolean;
  settings?: Settings;
  seed?: number | null;
  context?: Record<string, unknown> | null;
}

export interface SlotBody {
  id: string;
  excluded?: string[];
}

/** What to ask for; every field may be left out. */
export interface AskBody {
  id?: string | null;
  eligible?: string[] | null;
  excluded?: string[];
  pinned?: string[];
  k?: number | null;
  slots?: SlotBody[] | null;
  baseline?: string[] | null;
  deferred?: boolean;
  items?: string[] | null;
  unit?: string | null;
  context?: Features | null;
  pairs?: Record<string, number[]> | null;
}

/** What one arm did, for one item or, without `item`, for all: a `value` in [0, 1], or `seen: false`. */
export interface UnitBody {
  arm: string;
  item?: string | null;
  value?: number | null;
  seen?: boolean;
}

/** Feedback: a list of units, or `outcome`, one row per arm of the slate; null stays pending. */
export interface TellBody {
  feedback?: UnitBody[] | null;
  outcome?: (number | null)[][] | null;
  seen?: boolean[][] | null;
  amend?: boolean;
  arms?: string[] | null;
}

export interface BulkLine extends TellBody {
  decision: string;
}

export interface ArmsBody {
  add?: string[];
  retire?: string[];
  actions?: { name: string; parameters?: Record<string, unknown> } | null;
  support?: Record<string, string[]> | null;
  features?: Record<string, Features> | null;
}

/** A decision: `arms` in slate order, `action` their numbers. Give `signed_id` to the page that shows the slate. */
export interface DecisionReply {
  id: string;
  problem: string;
  arms: string[];
  action: number[];
  t: number;
  version: number;
  state: "open" | "deferred" | "complete" | "expired" | "unshown";
  created?: boolean;
  propensities?: number[] | null;
  policy_arms?: string[] | null;
  slots?: string[] | null;
  items?: string[] | null;
  inclusion?: number[] | null;
  group?: string;
  fallback?: boolean;
  context?: Features | null;
  segment?: number | null;
  signed_id?: string | null;
}

/** What feedback changed; `applied` is false if all of it was known. */
export interface AppliedReply {
  applied: boolean;
  late: boolean;
  state: string;
}

export interface ErrorBody {
  code: string;
  message: string;
}

export interface ErrorReply {
  error: ErrorBody;
}

export interface ProblemReply {
  name: string;
  n_arms: number;
  n_items: number;
  k: number;
  decisions: number;
  pending: number;
  version: number;
  settings: Settings;
  items: string[];
  weights: number[];
  warnings?: string[];
  t?: number;
}

export interface ArmRow {
  arm: string;
  pulls: number;
  pending: number;
  retired: boolean;
  seen: number[];
  mean: (number | null)[];
  variance: (number | null)[];
  items?: string[];
}

export interface ArmsReply {
  arms: ArmRow[];
  total: number;
}

/** A decision in a list: `at` is milliseconds since 1970, `unit` a digest of whom it was for. */
export interface ListedDecision {
  id: string;
  at: number;
  t: number;
  version: number;
  state: string;
  arms: string[];
  values: ((number | null)[] | null)[];
  group?: string;
  fallback?: boolean;
  unit?: string;
}

export interface DecisionPageReply {
  decisions: ListedDecision[];
  cursor: string | null;
}
