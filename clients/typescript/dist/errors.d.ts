/** The service refused a request, or could not be reached (`status` 0). */
export declare class SuperarmError extends Error {
    /** The HTTP status; 0 if there was no answer. */
    readonly status: number;
    /** The kind of error as the service names it, such as `unknown`, `conflict` or `invalid`. */
    readonly code: string;
    constructor(
    /** The HTTP status; 0 if there was no answer. */
    status: number, 
    /** The kind of error as the service names it, such as `unknown`, `conflict` or `invalid`. */
    code: string, message: string);
}
