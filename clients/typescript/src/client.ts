import { SuperarmError } from "./errors.js";
import type {
  AppliedReply,
  ArmRow,
  ArmsBody,
  ArmsReply,
  AskBody,
  BulkLine,
  DecisionReply,
  ErrorReply,
  Operations,
  ProblemReply,
  ProblemSpec,
  SettingsBody,
  TellBody,
} from "./types.js";
import { OPERATIONS } from "./types.js";

export interface ClientOptions {
  /** Where the service is, such as `http://localhost:8000`, with the root path if there is one. */
  url: string;
  /** A key, `sa_…`. Never send one to a browser: let your own server call the service. */
  key?: string;
  /** Milliseconds until a request is given up; 30,000 by default. */
  timeoutMs?: number;
  /** How often a request is repeated that got no answer, 429 or 503; 3 by default. */
  retries?: number;
  /** Another `fetch`, for tests and instrumentation. */
  fetch?: typeof fetch;
}

interface Given {
  path?: Record<string, string | number>;
  query?: Record<string, string | number | undefined>;
  body?: unknown;
}

export interface CallOptions {
  signal?: AbortSignal;
}

const MAX_PAGE = 1000;
const MAX_WAIT_MS = 10_000;

/**
 * A superarm service. Every request can be repeated without harm: decisions have ids, and feedback that is known
 * changes nothing. So the client repeats what got no answer.
 */
export class SuperarmClient {
  readonly #url: string;
  readonly #headers: Record<string, string>;
  readonly #timeoutMs: number;
  readonly #retries: number;
  readonly #fetch: typeof fetch;

  constructor(options: ClientOptions) {
    this.#url = options.url.replace(/\/+$/, "");
    this.#headers = options.key === undefined ? {} : { authorization: `Bearer ${options.key}` };
    this.#timeoutMs = options.timeoutMs ?? 30_000;
    this.#retries = options.retries ?? 3;
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
  }

  /**
   * Any operation of the service by its name in `/openapi.json`, such as
   * `call("get_lift", { path: { name: "ads" }, query: { delta: 0.05 } })`.
   */
  async call<Name extends keyof Operations>(
    operation: Name,
    given: Operations[Name]["given"],
    options?: CallOptions,
  ): Promise<Operations[Name]["reply"]> {
    const { path = {}, query = {}, body } = given as Given;
    const [method, template] = OPERATIONS[operation];
    const filled = template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(path[name])));
    const asked = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) if (value !== undefined) asked.set(name, String(value));
    const text = asked.toString();
    const address = text === "" ? filled : `${filled}?${text}`;
    if (typeof body === "string") {
      return (await this.#send(method, address, body, "application/x-ndjson", options)) as Operations[Name]["reply"];
    }
    return this.#json(method, address, body, options);
  }

  /** Create a problem; repeating the call changes nothing. */
  createProblem(name: string, spec: ProblemSpec, options?: CallOptions): Promise<ProblemReply> {
    return this.#json("PUT", problemPath(name), spec, options);
  }

  /** The current state of a problem. */
  problem(name: string, options?: CallOptions): Promise<ProblemReply> {
    return this.#json("GET", problemPath(name), undefined, options);
  }

  /** The names of all problems. */
  async problems(options?: CallOptions): Promise<string[]> {
    const reply = await this.#json<{ problems: string[] }>("GET", "/v1/problems", undefined, options);
    return reply.problems;
  }

  /** Add and retire arms; adding a retired arm brings it back. */
  changeArms(name: string, change: ArmsBody, options?: CallOptions): Promise<ProblemReply> {
    return this.#json("POST", `${problemPath(name)}/arms`, change, options);
  }

  /** Change some settings; the others stay. */
  changeSettings(name: string, change: SettingsBody, options?: CallOptions): Promise<ProblemReply> {
    return this.#json("PATCH", `${problemPath(name)}/settings`, change, options);
  }

  /** Replace the ranking that the policy follows, best arm first: whenever what you show today changes. */
  changeBaseline(name: string, arms: string[], options?: CallOptions): Promise<ProblemReply> {
    return this.#json("PUT", `${problemPath(name)}/baseline`, { arms }, options);
  }

  /** The statistics of all arms, read a page at a time. */
  async *arms(name: string, options?: CallOptions): AsyncGenerator<ArmRow, void, undefined> {
    for (let offset = 0; ; offset += MAX_PAGE) {
      const path = `${problemPath(name)}/arms?offset=${offset}&limit=${MAX_PAGE}`;
      const page = await this.#json<ArmsReply>("GET", path, undefined, options);
      yield* page.arms;
      if (offset + MAX_PAGE >= page.total) return;
    }
  }

  /** Ask for a decision. Without an `id` it gets a random one, so that a repeated request is the same decision. */
  decide(name: string, ask: AskBody = {}, options?: CallOptions): Promise<DecisionReply> {
    return this.#json("POST", `${problemPath(name)}/decisions`, withId(ask), options);
  }

  /** Ask for several decisions at once; an error takes the place of one that was refused. */
  async decideMany(name: string, asks: AskBody[], options?: CallOptions): Promise<(DecisionReply | ErrorReply)[]> {
    const body = { decisions: asks.map(withId) };
    const path = `${problemPath(name)}/decisions/bulk`;
    const reply = await this.#json<{ decisions: (DecisionReply | ErrorReply)[] }>("POST", path, body, options);
    return reply.decisions;
  }

  /** A decision as it is now. */
  decision(name: string, id: string, options?: CallOptions): Promise<DecisionReply> {
    return this.#json("GET", decisionPath(name, id), undefined, options);
  }

  /** Report that a deferred decision was shown, and with which arms if others than its own. */
  activate(name: string, id: string, shown?: string[], options?: CallOptions): Promise<AppliedReply> {
    const body = shown === undefined ? {} : { shown };
    return this.#json("POST", `${decisionPath(name, id)}/activate`, body, options);
  }

  /** Send feedback: what the arms of a decision did. */
  sendFeedback(name: string, id: string, feedback: TellBody, options?: CallOptions): Promise<AppliedReply> {
    return this.#json("POST", `${decisionPath(name, id)}/feedback`, feedback, options);
  }

  /** Send feedback of many decisions; one answer per line, in the same order. */
  async sendFeedbackMany(
    name: string,
    lines: BulkLine[],
    options?: CallOptions,
  ): Promise<(AppliedReply | ErrorReply)[]> {
    const body = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    const type = "application/x-ndjson";
    const text = await this.#send("POST", `${problemPath(name)}/feedback/bulk`, body, type, options);
    const answers = text.split("\n").filter((line) => line !== "");
    return answers.map((line) => JSON.parse(line) as AppliedReply | ErrorReply);
  }

  async #json<Reply>(method: string, path: string, body: unknown, options?: CallOptions): Promise<Reply> {
    const text = body === undefined ? undefined : JSON.stringify(body);
    return JSON.parse(await this.#send(method, path, text, "application/json", options)) as Reply;
  }

  async #send(
    method: string,
    path: string,
    body: string | undefined,
    type: string,
    options?: CallOptions,
  ): Promise<string> {
    for (let tries = 0; ; tries += 1) {
      const last = tries >= this.#retries;
      const reply = await this.#once(method, path, body, type, options).catch((error: unknown) => {
        if (last || options?.signal?.aborted) throw asError(error);
        return undefined;
      });
      if (reply?.ok) return reply.text;
      if (reply !== undefined && (last || (reply.status !== 429 && reply.status !== 503))) throw refusal(reply);
      await pause(Math.max(200 * 2 ** tries, reply?.waitMs ?? 0), options?.signal);
    }
  }

  async #once(method: string, path: string, body: string | undefined, type: string, options?: CallOptions) {
    const stop = new AbortController();
    const end = () => stop.abort(options?.signal?.reason);
    const timer = setTimeout(end, this.#timeoutMs);
    options?.signal?.addEventListener("abort", end);
    try {
      options?.signal?.throwIfAborted();
      const headers = body === undefined ? this.#headers : { ...this.#headers, "content-type": type };
      const init: RequestInit = { method, headers, signal: stop.signal };
      if (body !== undefined) init.body = body;
      const reply = await this.#fetch(`${this.#url}${path}`, init);
      const waitMs = 1000 * Number(reply.headers.get("retry-after") ?? 0);
      return { ok: reply.ok, status: reply.status, text: await reply.text(), waitMs };
    } finally {
      clearTimeout(timer);
      options?.signal?.removeEventListener("abort", end);
    }
  }
}

function problemPath(name: string): string {
  return `/v1/problems/${encodeURIComponent(name)}`;
}

function decisionPath(name: string, id: string): string {
  return `${problemPath(name)}/decisions/${encodeURIComponent(id)}`;
}

function withId(ask: AskBody): AskBody {
  return ask.id == null ? { ...ask, id: randomId() } : ask;
}

/** Unique, not secret: Node 18 and pages without TLS have no `randomUUID`. */
function randomId(): string {
  const word = (): string => Math.random().toString(36).slice(2, 12);
  return globalThis.crypto?.randomUUID?.() ?? `${Date.now().toString(36)}-${word()}${word()}`;
}

function refusal(reply: { status: number; text: string }): SuperarmError {
  try {
    const { error } = JSON.parse(reply.text) as ErrorReply;
    return new SuperarmError(reply.status, error.code, error.message);
  } catch {
    return new SuperarmError(reply.status, "http", reply.text.slice(0, 200));
  }
}

function asError(error: unknown): SuperarmError {
  const cause = error instanceof Error ? error.message : String(error);
  return new SuperarmError(0, "unreachable", `no answer from the service: ${cause}`);
}

function pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, Math.min(milliseconds, MAX_WAIT_MS));
    signal?.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
  });
}
