/**
 * Send feedback without waiting for an answer, also while the page goes away. False if the browser could not queue it.
 * It is sent as text/plain, which needs no preflight request.
 */
export function sendFeedbackBeacon(target, feedback) {
    const path = `/v1/problems/${encodeURIComponent(target.problem)}/beacon`;
    const address = target.url.replace(/\/+$/, "") + path;
    const body = JSON.stringify({ signed_id: target.signedId, feedback });
    if (typeof navigator !== "undefined" && typeof navigator.sendBeacon === "function") {
        return navigator.sendBeacon(address, body);
    }
    const init = { method: "POST", body, keepalive: true, credentials: "omit", mode: "cors" };
    fetch(address, init).catch(() => undefined);
    return true;
}
/**
 * Collects what a visitor did with a slate: what is reported is sent at once, and the arms that were shown and not
 * touched are reported as 0 when the page goes away.
 */
export class PageFeedback {
    #options;
    #reported = new Map();
    #finished = false;
    constructor(options) {
        this.#options = options;
    }
    /** An arm earned a value in [0, 1], for one item or for all. False if it was reported before, or not queued. */
    report(arm, value = 1, item) {
        const known = this.#reported.get(arm);
        const repeated = item === undefined ? known !== undefined : known === "all" || known?.has(item) === true;
        if (this.#finished || repeated || !this.#options.arms.includes(arm))
            return false;
        const unit = item === undefined ? { arm, value } : { arm, item, value };
        if (!sendFeedbackBeacon(this.#options, [unit]))
            return false;
        this.#reported.set(arm, item === undefined ? "all" : new Set(known).add(item));
        return true;
    }
    /** Report 0 for everything that was not reported; after that nothing more is sent. */
    finish() {
        const rest = this.#options.arms.flatMap((arm) => this.#unreported(arm));
        if (this.#finished)
            return false;
        this.#finished = rest.length === 0 || sendFeedbackBeacon(this.#options, rest);
        return this.#finished;
    }
    /** Finish when the page goes away; returns a function that takes this back. */
    finishOnPageHide() {
        const end = () => { this.finish(); };
        addEventListener("pagehide", end);
        return () => removeEventListener("pagehide", end);
    }
    #unreported(arm) {
        const known = this.#reported.get(arm);
        if (known === undefined)
            return [{ arm, value: 0 }];
        if (known === "all")
            return [];
        return (this.#options.items ?? []).filter((item) => !known.has(item)).map((item) => ({ arm, item, value: 0 }));
    }
}
