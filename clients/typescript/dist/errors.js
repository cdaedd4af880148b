/** The service refused a request, or could not be reached (`status` 0). */
export class SuperarmError extends Error {
    status;
    code;
    constructor(
    /** The HTTP status; 0 if there was no answer. */
    status, 
    /** The kind of error as the service names it, such as `unknown`, `conflict` or `invalid`. */
    code, message) {
        super(message);
        this.status = status;
        this.code = code;
        this.name = "SuperarmError";
    }
}
