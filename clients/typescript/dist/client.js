import { SuperarmError } from "./errors.js";
import { OPERATIONS } from "./types.js";
const MAX_PAGE = 1000;
const MAX_WAIT_MS = 10_000;
/**
 * A superarm service. Every request can be repeated without harm: decisions have ids, and feedback that is known
 * changes nothing. So the client repeats what got no answer.
 */
export class SuperarmClient {
    #url;
    #headers;
    #timeoutMs;
    #retries;
    #fetch;
    constructor(options) {
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
    async call(operation, given, options) {
        const { path = {}, query = {}, body } = given;
        const [method, template] = OPERATIONS[operation];
        const filled = template.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(String(path[name])));
        const asked = new URLSearchParams();
        for (const [name, value] of Object.entries(query))
            if (value !== undefined)
                asked.set(name, String(value));
        const text = asked.toString();
        const address = text === "" ? filled : `${filled}?${text}`;
        if (typeof body === "string") {
            return (await this.#send(method, address, body, "application/x-ndjson", options));
        }
        return this.#json(method, address, body, options);
    }
    /** Create a problem; repeating the call changes nothing. */
    createProblem(name, spec, options) {
        return this.#json("PUT", problemPath(name), spec, options);
    }
    /** The current state of a problem. */
    problem(name, options) {
        return this.#json("GET", problemPath(name), undefined, options);
    }
    /** The names of all problems. */
    async problems(options) {
        const reply = await this.#json("GET", "/v1/problems", undefined, options);
        return reply.problems;
    }
    /** Add and retire arms; adding a retired arm brings it back. */
    changeArms(name, change, options) {
        return this.#json("POST", `${problemPath(name)}/arms`, change, options);
    }
    /** Change some settings; the others stay. */
    changeSettings(name, change, options) {
        return this.#json("PATCH", `${problemPath(name)}/settings`, change, options);
    }
    /** The statistics of all arms, read a page at a time. */
    async *arms(name, options) {
        for (let offset = 0;; offset += MAX_PAGE) {
            const path = `${problemPath(name)}/arms?offset=${offset}&limit=${MAX_PAGE}`;
            const page = await this.#json("GET", path, undefined, options);
            yield* page.arms;
            if (offset + MAX_PAGE >= page.total)
                return;
        }
    }
    /** Ask for a decision. Without an `id` it gets a random one, so that a repeated request is the same decision. */
    decide(name, ask = {}, options) {
        return this.#json("POST", `${problemPath(name)}/decisions`, withId(ask), options);
    }
    /** Ask for several decisions at once; an error takes the place of one that was refused. */
    async decideMany(name, asks, options) {
        const body = { decisions: asks.map(withId) };
        const path = `${problemPath(name)}/decisions/bulk`;
        const reply = await this.#json("POST", path, body, options);
        return reply.decisions;
    }
    /** A decision as it is now. */
    decision(name, id, options) {
        return this.#json("GET", decisionPath(name, id), undefined, options);
    }
    /** Report that a deferred decision was shown, and with which arms if others than its own. */
    activate(name, id, shown, options) {
        const body = shown === undefined ? {} : { shown };
        return this.#json("POST", `${decisionPath(name, id)}/activate`, body, options);
    }
    /** Send feedback: what the arms of a decision did. */
    sendFeedback(name, id, feedback, options) {
        return this.#json("POST", `${decisionPath(name, id)}/feedback`, feedback, options);
    }
    /** Send feedback of many decisions; one answer per line, in the same order. */
    async sendFeedbackMany(name, lines, options) {
        const body = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
        const type = "application/x-ndjson";
        const text = await this.#send("POST", `${problemPath(name)}/feedback/bulk`, body, type, options);
        const answers = text.split("\n").filter((line) => line !== "");
        return answers.map((line) => JSON.parse(line));
    }
    async #json(method, path, body, options) {
        const text = body === undefined ? undefined : JSON.stringify(body);
        return JSON.parse(await this.#send(method, path, text, "application/json", options));
    }
    async #send(method, path, body, type, options) {
        for (let tries = 0;; tries += 1) {
            const last = tries >= this.#retries;
            const reply = await this.#once(method, path, body, type, options).catch((error) => {
                if (last || options?.signal?.aborted)
                    throw asError(error);
                return undefined;
            });
            if (reply?.ok)
                return reply.text;
            if (reply !== undefined && (last || (reply.status !== 429 && reply.status !== 503)))
                throw refusal(reply);
            await pause(Math.max(200 * 2 ** tries, reply?.waitMs ?? 0), options?.signal);
        }
    }
    async #once(method, path, body, type, options) {
        const stop = new AbortController();
        const end = () => stop.abort(options?.signal?.reason);
        const timer = setTimeout(end, this.#timeoutMs);
        options?.signal?.addEventListener("abort", end);
        try {
            options?.signal?.throwIfAborted();
            const headers = body === undefined ? this.#headers : { ...this.#headers, "content-type": type };
            const init = { method, headers, signal: stop.signal };
            if (body !== undefined)
                init.body = body;
            const reply = await this.#fetch(`${this.#url}${path}`, init);
            const waitMs = 1000 * Number(reply.headers.get("retry-after") ?? 0);
            return { ok: reply.ok, status: reply.status, text: await reply.text(), waitMs };
        }
        finally {
            clearTimeout(timer);
            options?.signal?.removeEventListener("abort", end);
        }
    }
}
function problemPath(name) {
    return `/v1/problems/${encodeURIComponent(name)}`;
}
function decisionPath(name, id) {
    return `${problemPath(name)}/decisions/${encodeURIComponent(id)}`;
}
function withId(ask) {
    return ask.id == null ? { ...ask, id: randomId() } : ask;
}
/** Unique, not secret: Node 18 and pages without TLS have no `randomUUID`. */
function randomId() {
    const word = () => Math.random().toString(36).slice(2, 12);
    return globalThis.crypto?.randomUUID?.() ?? `${Date.now().toString(36)}-${word()}${word()}`;
}
function refusal(reply) {
    try {
        const { error } = JSON.parse(reply.text);
        return new SuperarmError(reply.status, error.code, error.message);
    }
    catch {
        return new SuperarmError(reply.status, "http", reply.text.slice(0, 200));
    }
}
function asError(error) {
    const cause = error instanceof Error ? error.message : String(error);
    return new SuperarmError(0, "unreachable", `no answer from the service: ${cause}`);
}
function pause(milliseconds, signal) {
    return new Promise((resolve) => {
        const timer = setTimeout(resolve, Math.min(milliseconds, MAX_WAIT_MS));
        signal?.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
    });
}
