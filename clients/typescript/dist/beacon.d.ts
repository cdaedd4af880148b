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
export declare function sendFeedbackBeacon(target: BeaconTarget, feedback: UnitBody[]): boolean;
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
export declare class PageFeedback {
    #private;
    constructor(options: PageFeedbackOptions);
    /** An arm earned a value in [0, 1], for one item or for all. False if it was reported before, or not queued. */
    report(arm: string, value?: number, item?: string): boolean;
    /** Report 0 for everything that was not reported; after that nothing more is sent. */
    finish(): boolean;
    /** Finish when the page goes away; returns a function that takes this back. */
    finishOnPageHide(): () => void;
}
