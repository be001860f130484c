// holders.mjs - tests that events which arrive during a request override its answer; without a browser or a daemon.
import assert from "node:assert/strict";
import { until } from "./scene.mjs";

globalThis.navigator ??= {}; // Node.js has one from version 21 on
globalThis.localStorage = globalThis.sessionStorage = { getItem: () => null, setItem() {}, removeItem() {} };
const asked = []; // requests that wait: [path, answer]
globalThis.fetch = (path, { signal }) =>
  new Promise((done, fail) => {
    signal.addEventListener("abort", () => fail(signal.reason));
    asked.push([path, (items) => done(new Response(JSON.stringify({ items })))]);
  });

const { Holders } = await import("../src/data/holders.js");
const control = new AbortController(),
  item = (instance, node, workload) =>
  ({ instance, node, workload, state: "running", owner: "ann", devices: ["gpu0"] });
const event = (id, node, workload, state) => ({ object: { id, node, workload, state, gpus: [0] } });
const held = (holders, node) => [...(holders.nodes.get(node)?.keys() ?? [])].sort().join(" ");

/** Waits for the next request; returns the function that answers it. */
async function next(part) {
  await until(`asked for ${part}`, () => asked.length);
  const [path, answer] = asked.shift();
  assert.ok(path.includes(part), path);
  return answer;
}

const holders = new Holders(control.signal, () => {}),
  loaded = holders.load();
const all = await next("all=true");
holders.change(event(2, "n1", "8", "ended"), "2");
all([item(1, "n1", "7"), item(2, "n1", "8")]);
await loaded;
assert.equal(held(holders, "n1"), "1", "what ended while the list was read is not in it");

// An instance of unknown work: its node is requested, and the answer takes some time.
holders.change(event(3, "n1", "9", "running"), "3");
let answer = await next("node=n1");
holders.change(event(1, "n1", "7", "ended"), "1");
holders.change(event(4, "n1", "10", "running"), "4");
answer([item(1, "n1", "7"), item(3, "n1", "9")]);
answer = await next("node=n1"); // the answer had nothing about work 10
assert.equal(held(holders, "n1"), "3 4", "what was heard meanwhile counts");
assert.equal(holders.nodes.get("n1").get("3").owner, "ann");

// An instance moves between two nodes that are requested at the same time: the last event counts, in whichever order
// answers arrive.
holders.change(event(5, "n2", "11", "running"), "5");
answer([item(3, "n1", "9"), item(4, "n1", "10")]);
const second = await next("node=n2");
holders.change(event(6, "n3", "12", "running"), "6");
holders.change(event(5, "n2", "11", "ended"), "5");
second([item(5, "n2", "11")]);
(await next("node=n3"))([item(6, "n3", "12")]);
await until("all is taken", () => !holders.heard.size);
assert.equal([held(holders, "n1"), held(holders, "n2"), held(holders, "n3")].join(), "3 4,,6");

// A missing answer changes nothing.
holders.change(event(7, "n4", "13", "running"), "7");
await next("node=n4");
control.abort();
await until("it is given up", () => !holders.heard.size);
assert.equal(held(holders, "n4"), "7");
console.log("ok - holders");
