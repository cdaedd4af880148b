import type { AppliedReply, ArmRow, ArmsBody, AskBody, BulkLine, DecisionReply, ErrorReply, Operations, ProblemReply, ProblemSpec, SettingsBody, TellBody } from "./types.js";
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
export interface CallOptions {
    signal?: AbortSignal;
}
/**
 * A superarm service. Every request can be repeated without harm: decisions have ids, and feedback that is known
 * changes nothing. So the client repeats what got no answer.
 */
export declare class SuperarmClient {
    #private;
    constructor(options: ClientOptions);
    /**
     * Any operation of the service by its name in `/openapi.json`, such as
     * `call("get_lift", { path: { name: "ads" }, query: { delta: 0.05 } })`.
     */
    call<Name extends keyof Operations>(operation: Name, given: Operations[Name]["given"], options?: CallOptions): Promise<Operations[Name]["reply"]>;
    /** Create a problem; repeating the call changes nothing. */
    createProblem(name: string, spec: ProblemSpec, options?: CallOptions): Promise<ProblemReply>;
    /** The current state of a problem. */
    problem(name: string, options?: CallOptions): Promise<ProblemReply>;
    /** The names of all problems. */
    problems(options?: CallOptions): Promise<string[]>;
    /** Add and retire arms; adding a retired arm brings it back. */
    changeArms(name: string, change: ArmsBody, options?: CallOptions): Promise<ProblemReply>;
    /** Change some settings; the others stay. */
    changeSettings(name: string, change: SettingsBody, options?: CallOptions): Promise<ProblemReply>;
    /** The statistics of all arms, read a page at a time. */
    arms(name: string, options?: CallOptions): AsyncGenerator<ArmRow, void, undefined>;
    /** Ask for a decision. Without an `id` it gets a random one, so that a repeated request is the same decision. */
    decide(name: string, ask?: AskBody, options?: CallOptions): Promise<DecisionReply>;
    /** Ask for several decisions at once; an error takes the place of one that was refused. */
    decideMany(name: string, asks: AskBody[], options?: CallOptions): Promise<(DecisionReply | ErrorReply)[]>;
    /** A decision as it is now. */
    decision(name: string, id: string, options?: CallOptions): Promise<DecisionReply>;
    /** Report that a deferred decision was shown, and with which arms if others than its own. */
    activate(name: string, id: string, shown?: string[], options?: CallOptions): Promise<AppliedReply>;
    /** Send feedback: what the arms of a decision did. */
    sendFeedback(name: string, id: string, feedback: TellBody, options?: CallOptions): Promise<AppliedReply>;
    /** Send feedback of many decisions; one answer per line, in the same order. */
    sendFeedbackMany(name: string, lines: BulkLine[], options?: CallOptions): Promise<(AppliedReply | ErrorReply)[]>;
}
