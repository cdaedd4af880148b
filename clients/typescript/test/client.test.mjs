// Run by tests/service/test_typescript.py: `node --test`, in a project that has installed the client, with the address
// and a key of a running service in the environment.
import assert from "node:assert/strict";
import test from "node:test";
import { SuperarmClient, SuperarmError } from "superarm";

const { SUPERARM_URL: url, SUPERARM_KEY: key } = process.env;
const service = new SuperarmClient({ url: `${url}/`, key });
const spec = { arms: ["a", "b", "c"], items: ["x", "y"], k: 2, settings: { policy: { name: "bc_ucb" } } };
const name = "shop: news & more";

test("a decision, its feedback and what was learnt", async () => {
  const created = await service.createProblem(name, spec);
  assert.equal(created.n_arms, 3);
  assert.deepEqual(await service.problems(), [name]);
  const decision = await service.decide(name, { id: "visit 1/ü" });
  assert.equal(decision.arms.length, 2);
  assert.equal(decision.created, true);
  const again = await service.decide(name, { id: "visit 1/ü" });
  assert.deepEqual(again.arms, decision.arms);
  const outcome = [[1, 0], [0, 0]];
  assert.deepEqual(await service.sendFeedback(name, decision.id, { outcome }), {
    applied: true, late: false, state: "complete",
  });
  assert.equal((await service.sendFeedback(name, decision.id, { outcome })).applied, false);
  assert.equal((await service.decision(name, decision.id)).state, "complete");
  const rows = [];
  for await (const row of service.arms(name)) rows.push(row);
  const first = rows.find((row) => row.arm === decision.arms[0]);
  assert.deepEqual([first.pulls, first.mean], [1, [1, 0]]);
  assert.equal((await service.problem(name)).decisions, 1);
});

test("many at once, arms that come, settings that change, slates that are shown later", async () => {
  const many = await service.decideMany(name, [{}, { id: "known" }, { k: 3 }]);
  assert.notEqual(many[0].id, many[1].id);
  assert.equal(many[2].error.code, "invalid");
  const lines = [{ decision: "known", feedback: [{ arm: many[1].arms[0], value: 1 }] }, { decision: "nobody", feedback: [] }];
  const [told, unknown] = await service.sendFeedbackMany(name, lines);
  assert.equal(told.applied, true);
  assert.equal(unknown.error.code, "unknown");
  assert.equal((await service.changeArms(name, { add: ["d"] })).n_arms, 4);
  assert.equal((await service.changeSettings(name, { explore: 0.5 })).settings.explore, 0.5);
  const later = await service.decide(name, { deferred: true });
  assert.equal(later.state, "deferred");
  assert.equal((await service.activate(name, later.id)).state, "open");
});

test("errors have the status, the code and the words of the service", async () => {
  await assert.rejects(service.problem("nobody"), (error) => {
    assert.ok(error instanceof SuperarmError);
    assert.deepEqual([error.status, error.code], [404, "unknown"]);
    assert.match(error.message, /problem 'nobody' does not exist/);
    return true;
  });
  const stranger = new SuperarmClient({ url, key: "sa_nobody_nothing" });
  await assert.rejects(stranger.problems(), { status: 401 });
});

test("what got no answer, 429 or 503 is sent again, and nothing else", async () => {
  const seen = [];
  const answers = [new TypeError("connection refused"), new Response("", { status: 503 }), undefined];
  const flaky = (input, init) => {
    seen.push(JSON.parse(init.body).id);
    const answer = answers.shift();
    return answer instanceof Error ? Promise.reject(answer) : answer ? Promise.resolve(answer) : fetch(input, init);
  };
  const client = new SuperarmClient({ url, key, fetch: flaky });
  const decision = await client.decide(name);
  assert.deepEqual(seen, [decision.id, decision.id, decision.id]);
  let calls = 0;
  const refuse = () => { calls += 1; return Promise.resolve(new Response("no JSON", { status: 422 })); };
  await assert.rejects(new SuperarmClient({ url, fetch: refuse }).decide(name), { status: 422, code: "http" });
  assert.equal(calls, 1);
  const never = (_, init) => new Promise((_, reject) => {
    init.signal.addEventListener("abort", () => reject(new Error("given up")));
  });
  const impatient = new SuperarmClient({ url, fetch: never, timeoutMs: 5, retries: 0 });
  await assert.rejects(impatient.decide(name), { status: 0, code: "unreachable" });
  const stop = new AbortController();
  const waiting = new SuperarmClient({ url, fetch: never }).decide(name, {}, { signal: stop.signal });
  stop.abort();
  await assert.rejects(waiting, { status: 0 });
});

test("every operation can be called by its name", async () => {
  const lift = await service.call("get_lift", { path: { name }, query: { delta: 0.1 } });
  assert.equal(lift.delta, 0.1);
  const lines = await service.call("post_bulk", { path: { name }, body: '{"decision": "nobody", "feedback": []}\n' });
  assert.equal(JSON.parse(lines).error.code, "unknown");
  await assert.rejects(service.call("get_problem", { path: { name: "a/b" } }), { status: 404 });
});
