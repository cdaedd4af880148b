// For pages: feedback with the signed id of one decision, without a key. It can be loaded by itself.
import type { UnitBody } from "./types.js";

export interface BeaconTarget {
  /** Where the service is, with the root path if there is one. */
  url: string;
  problem: string;
  /** The `signed_id` of the decision, as the server of the page got it. */
  signedId: string;
}

/**
 * Send feedback without waiting for an answer, also while the page goes away. False if the browser could not queue it.
 * It is sent as text/plain, which needs no preflight request.
 */
export function sendFeedbackBeacon(target: BeaconTarget, feedback: UnitBody[]): boolean {
  const path = `/v1/problems/${encodeURIComponent(target.problem)}/beacon`;
  const address = target.url.replace(/\/+$/, "") + path;
  const body = JSON.stringify({ signed_id: target.signedId, feedback });
  if (typeof navigator !== "undefined" && typeof navigator.sendBeacon === "function") {
    return navigator.sendBeacon(address, body);
  }
  const init: RequestInit = { method: "POST", body, keepalive: true, credentials: "omit", mode: "cors" };
  fetch(address, init).catch(() => undefined);
  return true;
}

export interface PageFeedbackOptions extends BeaconTarget {
  /** The arms of the slate, as they were shown. */
  arms: string[];
  /** The items that the decision is about; needed if feedback is reported item by item. */
  items?: string[];
}

/**
 * Collects what a visitor did with a slate: what is reported is sent at once, and the arms that were shown and not
 * touched are reported as 0 when the page goes away.
 */
export class PageFeedback {
  readonly #options: PageFeedbackOptions;
  readonly #reported = new Map<string, Set<string> | "all">();
  #finished = false;

  constructor(options: PageFeedbackOptions) {
    this.#options = options;
  }

  /** An arm earned a value in [0, 1], for one item or for all. False if it was reported before, or not queued. */
  report(arm: string, value = 1, item?: string): boolean {
    const known = this.#reported.get(arm);
    const repeated = item === undefined ? known !== undefined : known === "all" || known?.has(item) === true;
    if (this.#finished || repeated || !this.#options.arms.includes(arm)) return false;
    const unit: UnitBody = item === undefined ? { arm, value } : { arm, item, value };
    if (!sendFeedbackBeacon(this.#options, [unit])) return false;
    this.#reported.set(arm, item === undefined ? "all" : new Set(known).add(item));
    return true;
  }

  /** Report 0 for everything that was not reported; after that nothing more is sent. */
  finish(): boolean {
    const rest = this.#options.arms.flatMap((arm) => this.#unreported(arm));
    if (this.#finished) return false;
    this.#finished = rest.length === 0 || sendFeedbackBeacon(this.#options, rest);
    return this.#finished;
  }

  /** Finish when the page goes away; returns a function that takes this back. */
  finishOnPageHide(): () => void {
    const end = (): void => { this.finish(); };
    addEventListener("pagehide", end);
    return () => removeEventListener("pagehide", end);
  }

  #unreported(arm: string): UnitBody[] {
    const known = this.#reported.get(arm);
    if (known === undefined) return [{ arm, value: 0 }];
    if (known === "all") return [];
    return (this.#options.items ?? []).filter((item) => !known.has(item)).map((item) => ({ arm, item, value: 0 }));
  }
}
