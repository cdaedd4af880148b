export { SuperarmClient } from "./client.js";
export type { CallOptions, ClientOptions, DecisionFilter } from "./client.js";
export { PageFeedback, sendFeedbackBeacon } from "./beacon.js";
export type { BeaconTarget, PageFeedbackOptions } from "./beacon.js";
export { SuperarmError } from "./errors.js";
export * from "./types.js";
