// large.mjs URL TOKEN [NODES JOBS] - a large cluster in a real browser: fills it over the API, then measures how long a
// person waits, next to the goals. The status says whether the pages did what they should. What does not depend on the
// machine, the size of the bundle, must meet its goal; a time may take up to MARGIN times its goal the best of some
// times, for here other tests run beside it.
import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { leave, visit } from "./browser.mjs";
import { PATIENCE, client, until } from "./scene.mjs";

const [url, admin, nodes = "5000", jobs = "100000"] = process.argv.slice(2);
const call = client(url, admin);
const AT_ONCE = 200,
  MARGIN = 5,
  ATTEMPTS = 3;
let failed = 0;

const seconds = (began) => `${((Date.now() - began) / 1000).toFixed(1)} s`;

/** Makes an object for each number below `count`, many in one transaction. */
async function each(count, make) {
  for (let from = 0; from < count; from += AT_ONCE)
    await call("POST", "/v1/txn",
      { changes: Array.from({ length: Math.min(AT_ONCE, count - from) }, (_, i) => make(from + i)) });
}

function row(what, value, goal, unit) {
  const most = unit === "ms" ? goal * MARGIN : goal,
    bad = !(value <= most); // also what is no number
  if (bad) failed++;
  const verdict = value <= goal ? "met" : bad ? `FAILED: at most ${most} ${unit} are allowed`
    : `missed, within the ${most} ${unit} that are allowed`;
  const shown = value.toFixed(unit === "KB" ? 1 : 0).padStart(8);
  console.log(`${what.padEnd(58)} ${shown} ${unit}   goal ${goal} ${unit}   ${verdict}`);
}

/**
 * Measures what gives rows of [what, milliseconds, goal], again where one is not allowed: something else may have stood
 * in its way.
 */
async function times(measure) {
  let best = [];
  for (let i = 0; i < ATTEMPTS && (i === 0 || best.some(([, value, goal]) => !(value <= goal * MARGIN))); i++)
    best = (await measure()).map(([what, value, goal], at) => [what, Math.min(value, best[at]?.[1] ?? Infinity), goal]);
  for (const [what, value, goal] of best) row(what, value, goal, "ms");
}

/** Returns the time of the first paint; the browser may report it only later. */
const painted = async (page) =>
  (await page.waitForFunction(() => performance.getEntriesByType("paint")
    .find((e) => e.name === "first-contentful-paint")?.startTime)).jsonValue();

async function fill() {
  const began = Date.now(),
    users = 20;
  for (let i = 0; i < users; i++) await call("POST", "/v1/users", { id: `user${i}` });
  await each(Number(nodes), (i) => ({ op: "put", kind: "nodes", id: `n${i}`, object: {
    allocatable: { cpu: 64, memory: "512Gi" }, gpus: [{ count: 8, model: "H100", memory: "80Gi" }],
      zone: `z${Math.floor(i / 1000)}`, rack: `r${Math.floor(i / 50)}` } }));
  console.log(`${nodes} nodes in ${seconds(began)}`);
  const mid = Date.now();
  await each(Number(jobs), (i) => ({ op: "put", kind: "jobs", object: {
    owner: `user${i % users}`, name: `job-${i % 97}`, gpu: [1, 2, 4, 8][i % 4], requests: { cpu: 4, memory: "8Gi" },
      time_limit: `${(i % 9) + 1}h`, command: ["train"] } }));
  console.log(`${jobs} jobs in ${seconds(mid)}`);
  await until("the cluster is full",
    async () => { const { total } = await call("GET", "/v1/use"); return total.gpu.held >= total.gpu.there * 0.9; },
    15 * PATIENCE);
}

/** Opens a page; returns the times until the first paint and until `ready`. */
async function openPage(path, ready) {
  const visitor = await visit(url, { token: admin });
  visitor.page.setDefaultTimeout(3000 * PATIENCE);
  const began = Date.now();
  await visitor.go(path);
  await ready(visitor.page);
  const whole = Date.now() - began;
  return { ...visitor, paint: await painted(visitor.page), whole };
}

async function bundle() {
  const html = await (await fetch(`${url}/`)).text();
  let size = gzipSync(html, { level: 9 }).length;
  const paths = [...html.matchAll(/(?:src|href)="\.(\/assets\/[^"]+)"/g)].map(([, path]) => path);
  assert.equal(paths.length, 2, "a script and a style sheet");
  for (const path of paths) {
    const { headers } = await fetch(url + path, { method: "HEAD", headers: { "Accept-Encoding": "gzip" } });
    assert.equal(headers.get("content-encoding"), "gzip");
    size += Number.parseInt(headers.get("content-length"), 10); // NaN without the header: over every bound
  }
  return size / 1000;
}

/** Returns the median time from a change to the frame that shows it. */
async function latency(page, change, shows) {
  const times = [];
  for (let i = 0; i < 7; i++) {
    const seen = page.evaluate(shows, i % 2 === 0);
    await new Promise((done) => setTimeout(done, 300));
    const began = Date.now();
    await change(i % 2 === 0);
    times.push((await seen) - began);
  }
  return times.sort((a, b) => a - b)[3];
}

const shows = (cordoned) => new Promise((done) => {
  const look = () => {
    const text = [...document.querySelectorAll("tbody tr")]
      .find((tr) => tr.cells[0].textContent === "n0")?.cells[1].textContent;
    if (text === (cordoned ? "cordoned" : "ready")) done(Date.now());
    else requestAnimationFrame(look);
  };
  look();
});

/** Returns the 95th percentile of frame times while the mouse moves over the map. */
async function smooth(page) {
  const map = page.getByRole("application"),
    box = await map.boundingBox();
  await page.evaluate(() => {
    window.berthFrames = [];
    let last = performance.now();
    const look = () => { const now = performance.now(); window.berthFrames.push(now - last); last = now;
      requestAnimationFrame(look); };
    requestAnimationFrame(look);
  });
  for (let i = 0; i < 60; i++) await page.mouse.move(box.x + 20 + i * 15, box.y + 40 + i * 5);
  return page.evaluate(() => window.berthFrames.sort((a, b) => a - b)[Math.floor(window.berthFrames.length * 0.95)]);
}

if (!(await call("GET", "/v1/nodes?limit=1")).items.length) await fill(); // skipped if an earlier run has filled it
row("bundle, compressed", await bundle(), 120, "KB");

await times(async () => {
  const empty = await visit(url);
  await empty.page.goto(url);
  await empty.page.getByLabel("Token").waitFor();
  const paint = await painted(empty.page);
  await empty.close();
  return [["first paint of the sign-in page", paint, 1000]];
});

await times(async () => {
  const cluster = await openPage("cluster", async (page) => {
    await page.getByRole("application", { name: `${nodes} nodes` }).waitFor();
    await page
      .locator(".legend")
      .getByText(/^user\d+ /)
      .first()
      .waitFor();
  });
  const frames = await smooth(cluster.page);
  assert.deepEqual(cluster.trouble, []);
  await cluster.close();
  return [["first paint of the cluster page", cluster.paint, 1000],
    [`... all of its ${nodes} nodes and who holds them`, cluster.whole, 5000],
    ["... 95 of 100 frames while the mouse goes over the map", frames, 50]];
});

const firstRows = (page) => page.locator("tbody tr").nth(50).waitFor();

/** Opens a page with a long list and measures actions on it: rows like those of `times`. */
async function listed(path, what, goal, more = () => []) {
  const list = await openPage(path, firstRows);
  const rows = [[what, list.whole, goal], ...(await more(list.page))];
  assert.deepEqual(list.trouble, []);
  await list.close();
  return rows;
}

await times(() => listed("queue", "the queue page, with its first rows", 3000));
await times(() => listed("jobs", "the jobs page", 2000));
const cordon = (cordoned) => call("POST", `/v1/nodes/n0/${cordoned ? "cordon" : "enable"}`);
await times(() =>
  listed("nodes", "the nodes page", 3000, async (page) => {
    const median = await latency(page, cordon, shows);
    await cordon(false); // as it was
    return [["a change from the request to the screen, median of 7", median, 200]];
  }),
);
await leave();
process.exit(failed ? 1 : 0);
