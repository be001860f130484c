// pages.mjs URL TOKEN [SHOTS] - tests every page in a real browser, run by tests/web/web_test.sh. With a folder, stores
// a screenshot of each page there.
//
// A case is a row of `cases`: a name and a function of the scene; it fails by throwing. Cases with `BRIEF` are short
// and important: WEB_BRIEF=1 runs only these, WEB_CASE=WORDS only cases with these words in their name.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { leave, visit } from "./browser.mjs";
import { Line, build, endedJob, until } from "./scene.mjs";
import { troubleCases } from "./trouble.mjs";

const [url, admin, shots] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PAGES = ["cluster", "queue", "jobs", "jobs/1", "services", "services/web.ann", "nodes", "nodes/n1", "users",
  "policies", "journal", "what-if"];
// Browsers log failed requests on the console; a case with expected failures ignores them.
const refused = (line) => /^console: Failed to load resource: the server responded with a status of 4\d\d/.test(line);

/** Runs the case as a user, and requires an empty console and no requests to other hosts. */
async function as(scene, who, options, run) {
  const visitor = await visit(options.at ?? url, { token: scene.tokens[who], ...options });
  try {
    await run(visitor);
    const left = visitor.trouble.filter((line) => !(options.refusals && refused(line)));
    assert.deepEqual(left, [], "nothing is said on the console");
  } finally {
    await visitor.close();
  }
}

async function shown(visitor, path) {
  await visitor.go(path);
  // waits for the new page, not the old one
  await visitor.page.locator(`main[data-page="${path.split("?")[0]}"] #page-title`).waitFor();
  await visitor.page.waitForFunction(() => ![...document.querySelectorAll("[role=status]")]
    .some((e) => e.textContent.includes("…")));
}

async function judge(visitor, path) {
  await visitor.page.evaluate((source) => { if (!window.axe) (0, eval)(source); }, axe)
    .catch(async () => visitor.page.addScriptTag({ content: axe }));
  const { violations } = await visitor.page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  assert.deepEqual(violations.map((v) => `${path}: ${v.id}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(" | ")}`),
    []);
}

const BRIEF = true;
const cases = [
  ["the page and its script come with their headers", async () => {
    const answer = await fetch(`${url}/`);
    assert.match(answer.headers.get("content-security-policy"), /default-src 'none'; script-src 'self'/);
    const html = await answer.text();
    assert.doesNotMatch(html, /<script(?![^>]*src=)/, "no inline script");
    const script = /src="\.(\/assets\/[^"]+)"/.exec(html)[1];
    const got = await fetch(url + script, { headers: { "Accept-Encoding": "gzip" } });
    assert.equal(got.headers.get("content-encoding"), "gzip");
    assert.match(got.headers.get("cache-control"), /immutable/);
    const again = await fetch(url + script, { headers: { "If-None-Match": got.headers.get("etag") } });
    assert.equal(again.status, 304);
    assert.equal((await fetch(`${url}/assets/none.js`)).status, 401, "what is not the dashboard's is the API's");
    assert.equal((await fetch(`${url}/`, { method: "POST" })).status, 401);
  }, BRIEF],
  ["an unknown token is refused", async (scene) => as(scene, "none", { refusals: true }, async ({ page }) => {
    await page.goto(url);
    await page.getByLabel("Token").waitFor();
    assert.equal(await page.locator(".trouble").count(), 0, "nothing is wrong before anything was typed");
    if (shots) await page.screenshot({ path: join(shots, "sign-in.png") });
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("Enter a token.").waitFor();
    await page.getByLabel("Token").fill("berth_wrong");
    await page.getByLabel("Token").press("Enter");
    await page.getByText("Invalid or expired token.").waitFor();
    await page.getByLabel("Token").fill("b");
    assert.equal(await page.locator(".trouble").count(), 0, "what was wrong is being changed");
    await page.getByLabel("Token").fill(scene.tokens.ann);
    await page.getByLabel("Token").press("Enter");
    await page.getByRole("heading", { name: "Cluster" }).waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Token").waitFor();
    assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  }), BRIEF],
  ...["light", "dark"].map((theme) => [`every page is there and accessible, ${theme}`,
    async (scene) => as(scene, "admin", { theme }, async (visitor) => {
    for (const path of PAGES) {
      await shown(visitor, path);
      await visitor.page.waitForTimeout(!shots ? 300 : path === "cluster" ? 16000 : 2500);
      if (shots && theme === "light") await visitor.page.screenshot(
        { path: join(shots, `${path.split("/").join("-").replace(/-(1|n1|web.ann)$/, "-one")}.png`) });
      if (shots && theme === "dark" && path === "cluster") await visitor.page.screenshot(
        { path: join(shots, "cluster-dark.png") });
      await judge(visitor, path);
    }
  })]),
  ["in Chinese, on a phone, nothing is wider than the screen",
    async (scene) => as(scene, "ann", { width: 390, height: 800, language: "zh" }, async (visitor) => {
    for (const path of PAGES) {
      await shown(visitor, path);
      const { wide, lang } = await visitor.page.evaluate(
        () => ({ wide: document.documentElement.scrollWidth, lang: document.documentElement.lang }));
      assert.equal(lang, "zh");
      assert.ok(wide <= 390, `${path} is ${wide} wide`);
      assert.doesNotMatch(await visitor.page.locator("main").textContent(), /NaN|undefined/, path);
      if (shots && path === "cluster") await visitor.page.screenshot({ path: join(shots, "cluster-phone-zh.png") });
    }
    await visitor.page.getByRole("heading", { name: "假设分析" }).waitFor();
  }), BRIEF],
  ["the map works by keyboard and shows holders", async (scene) => as(scene, "admin", {}, async (visitor) => {
    await shown(visitor, "cluster?by=none");
    const map = visitor.page.getByRole("application");
    await map.focus();
    await map.press("ArrowRight");
    await visitor.page.locator(".hover").getByText("n1", { exact: true }).waitFor();
    await map.press("ArrowRight");
    await visitor.page.locator(".hover").getByText("n2", { exact: true }).waitFor();
    await map.press("Enter");
    await visitor.page.getByRole("heading", { name: "Node n2" }).waitFor();
  })],
  ["changes appear by themselves", async (scene) => as(scene, "admin", {}, async (visitor) => {
    await shown(visitor, "nodes");
    const row = visitor.page.getByRole("row").filter({ hasText: "n24" });
    await row.getByText("ready").waitFor();
    await scene.call("POST", "/v1/nodes/n24/cordon");
    await row.getByText("cordoned").waitFor();
    await scene.call("POST", "/v1/nodes/n24/enable");
    await row.getByText("ready").waitFor();
  }), BRIEF],
  ["a broken stream resumes where it was",
    async (scene) => as(scene, "admin", { at: scene.line.url }, async (visitor) => {
    const began = Date.now();
    await shown(visitor, "nodes");
    await visitor.page.locator(".line.live").waitFor();
    const row = visitor.page.getByRole("row").filter({ hasText: "n23" }), asked = [];
    const { revision } = await scene.call("POST", "/v1/nodes/n23/drain");
    await row.getByText("draining").waitFor();
    visitor.page.on("request", (request) => {
      // the status of nodes is requested periodically
      const { pathname, search } = new URL(request.url()),
        due = search.includes("limit=") && Date.now() - began >= 30000;
      if (pathname === "/v1/nodes" && search && !due) asked.push(search);
    });
    scene.line.cut();
    await visitor.page.locator(".line.lost").waitFor();
    await scene.call("POST", "/v1/nodes/n23/cordon");
    scene.line.mend();
    await row.getByText("cordoned").waitFor();
    assert.ok(asked.length > 0 && asked.every((search) => search.startsWith("?watch=")),
      "it goes on, and lists nothing again");
    assert.ok(Number(/\d+/.exec(asked.at(-1))[0]) >= revision, "after what it has seen");
    await scene.call("POST", "/v1/nodes/n23/enable");
    visitor.trouble.splice(0, visitor.trouble.length, ...visitor.trouble.filter((line) => !/net::ERR_/.test(line)));
  })],
  ["the queue is in the daemon's order, with factors and a plan",
    async (scene) => as(scene, "admin", {}, async (visitor) => {
    await shown(visitor, "queue");
    const rows = visitor.page.locator("tbody tr");
    await until("all rows, the first one first", async () => {
      const told = await scene.call("GET", "/v1/queue?limit=200");
      assert.ok(told.total > 3, "some wait");
      return (await rows.count()) === told.items.length &&
        (await rows.first().textContent()).includes(told.items[0].name);
    });
    await visitor.page.locator("td .bar .part").first().waitFor({ state: "attached" });
    assert.match(await rows.first().locator(".bar").getAttribute("aria-label"), /fair_share/);
    for (const bar of ["runs", "next"]) await visitor.page.locator(`.gantt rect.${bar}`).first()
      .waitFor({ state: "attached" });
    await visitor.page.getByLabel("User").fill("bob");
    await visitor.page.getByLabel("User").press("Enter");
    await until("only bob's",
      async () => { const texts = await rows.allTextContents();
      return texts.length && texts.every((text) => text.includes("bob")); });
  })],
  ["the queue and a job show the terms of the default order",
    async (scene) => as(scene, "admin", {}, async (visitor) => {
    await scene.call("PATCH", "/v1/system/settings", { policy: null });
    try {
      const { id } = await until("a forecast by it",
        async () => { const { items: [row] } = await scene.call("GET", "/v1/queue?limit=1&factors=true");
        return row.terms.length && row; });
      for (const path of ["queue", `jobs/${id}`]) {
        await shown(visitor, path);
        const bar = visitor.page.locator(".bar", { has: visitor.page.locator(".part") })
          .and(visitor.page.getByRole("img", { name: /^waited [\d.,]+, patience/ })).first();
        await bar.waitFor({ state: "attached" });
      }
    } finally {
      await scene.call("PATCH", "/v1/system/settings", { policy: "multifactor" });
    }
  })],
  ["the queue shows factors under a policy that is a formula",
    async (scene) => as(scene, "admin", {}, async (visitor) => {
    await scene.call("PUT", "/v1/policies/by-formula", { formula: "return 3 * age + fair_share" });
    await scene.call("PATCH", "/v1/system/settings", { policy: "by-formula" });
    try {
      await shown(visitor, "queue");
      const bar = visitor.page.locator("td .bar", { has: visitor.page.locator(".part") }).first();
      await bar.waitFor({ state: "attached" });
      assert.match(await bar.getAttribute("aria-label"), /fair_share/);
      assert.deepEqual(await visitor.page.locator(".trouble").allTextContents(), []);
    } finally {
      await scene.call("PATCH", "/v1/system/settings", { policy: "multifactor" });
    }
  }), BRIEF],
  ["each outcome of a job has a word, an icon and a class of its own",
    async (scene) => as(scene, "admin", {}, async (visitor) => {
    const { page } = visitor;
    const shows = async (id, word) => {
      await shown(visitor, `jobs/${id}`);
      const state = page.locator(".facts .state", { hasText: word });
      await state.waitFor();
      return { word: (await state.textContent()).trim(), class: await state.getAttribute("class"),
        color: await state.evaluate((e) => getComputedStyle(e).color) };
    };
    const given = await scene.call("POST", "/v1/jobs", { owner: "aud", command: ["true"], requests: { cpu: 1000 } });
    await scene.call("POST", `/v1/jobs/${given.id}/cancel`);
    const succeeded = await shows(await endedJob(scene, "aud", { state: "ended", exit: 0 }), "succeeded"),
      cancelled = await shows(given.id, "cancelled");
    for (const part of ["word", "class", "color"]) assert.notEqual(cancelled[part], succeeded[part], part);
    await shows(await endedJob(scene, "aud", { state: "failed", exit: 3 }), "failed");
    const killed = await endedJob(scene, "aud", { state: "failed", exit: 137, oom_killed: true });
    await shows(killed, "out of memory");
    await shown(visitor, "jobs?state=out-of-memory");
    assert.deepEqual(await page.locator("tbody tr td:first-child").allTextContents(), [String(killed)],
      "the list is filtered by an outcome");
    // All outcomes, as the API names them.
    const outcomes = ["succeeded", "failed", "cancelled", "timed-out", "out-of-memory", "node-lost", "preempted"];
    await page.route((url) => url.pathname === "/v1/jobs" && url.searchParams.has("order"), async (route) => {
      const answer = await route.fetch(), body = await answer.json();
      outcomes.forEach((outcome, i) => Object.assign(body.items[i].status,
        { state: outcome === "succeeded" ? "ended" : "failed", outcome }));
      await route.fulfill({ response: answer, json: body });
    });
    await shown(visitor, "jobs");
    const states = page.locator("tbody tr .state");
    await states.first().waitFor();
    const told = (await states.evaluateAll(
      (all) => all.map((e) => [e.querySelector(".icon")?.textContent, e.lastChild.textContent, e.className]))).slice(0,
      outcomes.length);
    assert.deepEqual(told.map(([, word]) => word),
      ["succeeded", "failed", "cancelled", "timed out", "out of memory", "node lost", "preempted"]);
    for (const part of [0, 2]) assert.equal(new Set(told.map((row) => row[part])).size, outcomes.length,
      `each is told apart: ${told.map((row) => row[part])}`);
    await judge(visitor, "jobs that are over");
    await page.unrouteAll({ behavior: "wait" });
  }), BRIEF],
  ["a job shows its output as it is written, its use, and takes a shell",
    async (scene) => as(scene, "ann", {}, async ({ page, go }) => {
    await go("jobs/1");
    await page.getByText("line 3 as it is written").waitFor();
    await page.getByText("30 % epoch 3").waitFor();
    await page.locator(".plot canvas").first().waitFor();
    await page.getByRole("button", { name: "Open a shell" }).click();
    await page.getByText("welcome").waitFor();
    await page.getByLabel("Shell input").fill("hello");
    await page.getByLabel("Shell input").press("Enter");
    await page.getByText("heard hello").waitFor();
    await page.getByText("靠岸").waitFor();
    await page.getByRole("button", { name: "Close the shell" }).click();
  })],
  ["a job is submitted, held, released and cancelled",
    async (scene) => as(scene, "bob", { refusals: true }, async (visitor) => {
    const { page } = visitor;
    await shown(visitor, "jobs");
    await page.getByRole("button", { name: "Submit a job" }).click();
    const form = page.getByRole("form", { name: "Submit a job" });
    await form.getByLabel("Command").fill("sleep 'open");
    await form.getByRole("button", { name: "Submit" }).click();
    await form.getByText("Unclosed quotation mark.").waitFor();
    await form.getByLabel("Command").fill("sleep 100");
    await form.getByLabel("Memory").fill("much");
    await form.getByRole("button", { name: "Submit" }).click();
    await form.locator(".field.bad").getByText("requests").waitFor();
    assert.equal(await form.getByLabel("Memory").getAttribute("aria-invalid"), "true");
    await form.getByLabel("Memory").fill("1Gi");
    await form.getByLabel("GPUs").fill("8");
    await form.getByRole("button", { name: "Preview queue position" }).click();
    await page.getByText(/Position \d+ of \d+ pending workloads\./).waitFor();
    await form.getByRole("button", { name: "Submit" }).click();
    await page.getByRole("heading", { name: /^Job \d+/ }).waitFor();
    const id = /jobs\/(\d+)/.exec(page.url())[1],
      state = async () => (await scene.call("GET", `/v1/jobs/${id}`)).status.state;
    await page.getByRole("button", { name: "Hold" }).click();
    await until("held", async () => (await state()) === "held");
    await page.getByRole("button", { name: "Release" }).click();
    await until("released", async () => (await state()) === "pending");
    await page.getByRole("button", { name: "Cancel", exact: true }).click();
    const dialog = page.getByRole("dialog", { name: `Cancel job ${id}?` });
    await dialog.waitFor();
    assert.deepEqual(await dialog.getByRole("button").allTextContents(), ["Keep the job", "Cancel the job"]);
    await dialog.getByRole("button", { name: "Keep the job" }).click();
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    assert.equal(await state(), "pending");
    await page.getByRole("button", { name: "Cancel", exact: true }).click();
    await dialog.getByRole("button", { name: "Cancel the job" }).click();
    await until("cancelled", async () => (await state()) === "ended");
    await page.locator(".facts .state", { hasText: "cancelled" }).waitFor();
  })],
  ["roles: others' work is hidden, and only permitted actions are offered", async (scene) => {
    await as(scene, "bob", { refusals: true }, async (visitor) => {
      const { page } = visitor;
      await shown(visitor, "queue");
      await page.getByText("another user's workload").first().waitFor();
      assert.equal(await page.locator("tbody").getByText("ann", { exact: false }).count(), 0);
      await visitor.go("jobs/1");
      await page.getByText(/no job "1"/).first().waitFor();
      await shown(visitor, "nodes/n1");
      assert.equal(await page.getByRole("button", { name: "Drain" }).count(), 0);
      await shown(visitor, "journal");
      await page.getByText("has no access to the audit log").waitFor();
      await shown(visitor, "policies");
      assert.equal(await page.getByRole("button", { name: "Save" }).count(), 0);
    });
    await as(scene, "aud", {}, async (visitor) => {
      await shown(visitor, "jobs/1");
      assert.equal(await visitor.page.getByRole("button", { name: "Cancel", exact: true }).count(), 0);
      await visitor.page.getByText("You have read-only access to this job.").waitFor();
    });
    await as(scene, "mia", {}, async (visitor) => {
      await shown(visitor, "users");
      await visitor.page.getByRole("button", { name: "Change ann" }).waitFor();
      assert.equal(await visitor.page.getByRole("button", { name: "Change vision" }).count(), 0);
      assert.equal(await visitor.page.getByRole("button", { name: "Change bob" }).count(), 0);
    });
  }, BRIEF],
  ["a revoked token ends the session", async (scene) => {
    const made = await scene.call("POST", "/v1/tokens", { user: "eve" });
    await as({ tokens: { eve: made.token } }, "eve", { refusals: true }, async (visitor) => {
      await shown(visitor, "nodes");
      await scene.call("DELETE", `/v1/tokens/${made.id}`);
      await visitor.page.getByLabel("Token").waitFor();
    });
  }],
  ["a node is drained and shows its progress", async (scene) => as(scene, "admin", {}, async (visitor) => {
    const node = scene.placed.find((i) => i.node !== scene.first.node).node, { page } = visitor;
    await shown(visitor, `nodes/${node}`);
    await page.getByRole("button", { name: "Drain" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Drain" }).click();
    await page.getByText(/\d+ pods remaining|Drained: the node has no pods/).waitFor();
    await page.getByRole("button", { name: "Enable" }).click();
    await until("ready", async () => (await scene.call("GET", `/v1/nodes/${node}`)).state === "ready");
  })],
  ["a node shows its OpTasks with their output, and runs one again",
    async (scene) => as(scene, "admin", {}, async (visitor) => {
    const { page } = visitor, { node } = scene.first;
    const step = async () => (await scene.call("GET", `/v1/nodes/${node}/optasks`)).items[0];
    await scene.call("POST", "/v1/optasks", { id: "tune", script: "exit 3", nodes: [node] });
    await until("begun", async () => (await step()).state === "running");
    await scene.agent.call("POST", `/v1/nodes/${node}/optasks/tune?epoch=1`,
      { attempt: 1, state: "failed", fault: "script", error: "no such device", exit: 3 });
    await shown(visitor, `nodes/${node}`);
    const row = page.getByRole("row").filter({ hasText: "tune" });
    await row.getByText("script: no such device: exit code 3").waitFor();
    await page.getByRole("button", { name: "Output of tune" }).click();
    await page.getByText("the first line").waitFor();
    await judge(visitor, "a node with OpTasks");
    await page.getByRole("button", { name: "Retry tune" }).click();
    await until("once more", async () => (await step()).attempt === 2);
    await scene.agent.call("POST", `/v1/nodes/${node}/optasks/tune?epoch=1`, { attempt: 2, state: "done" });
    await row.getByText("done", { exact: true }).waitFor();
  })],
  ["use, queue and waits are there when the page opens", async (scene) => as(scene, "bob", {}, async (visitor) => {
    await until("two points", async () => (await scene.call("GET", "/v1/series")).at.length >= 2);
    const { page } = visitor;
    await shown(visitor, "cluster");
    const plots = page.locator(".plot canvas");
    await until("three plots", async () => (await plots.count()) === 3);
    const drawn = () => plots.evaluateAll(
      (all) => all.map((c) => new Set(c.getContext("2d").getImageData(0, 0, c.width, c.height).data).size > 8));
    await until("lines in each", async () => (await drawn()).every(Boolean));
    await page.getByLabel("Time range").selectOption("week");
    await page.getByText("Recorded since").waitFor();
    await until("three plots of the week", async () => (await plots.count()) === 3);
  })],
  ["a service: errors at their fields; scale, stop, start, settings",
    async (scene) => as(scene, "ann", { refusals: true }, async (visitor) => {
    const { page } = visitor, app = async () => scene.call("GET", "/v1/apps/web.ann");
    await shown(visitor, "services");
    await page.getByRole("button", { name: "Add a service" }).click();
    const form = page.getByRole("form", { name: "Add a service" });
    await form.getByLabel("Name").fill("Not A Name!");
    await form.getByLabel("Command").fill("serve");
    await form.getByRole("button", { name: "Add a service" }).click();
    await form.locator(".field.bad").getByText("name").first().waitFor();
    assert.equal(await form.getByLabel("Name").getAttribute("aria-invalid"), "true");
    await form.getByLabel("Name").fill("second");
    await form.getByLabel("Replicas").fill("many");
    await form.getByRole("button", { name: "Add a service" }).click();
    await form.locator(".field.bad").getByText("replicas").first().waitFor();
    await form.getByLabel("Replicas").fill("1");
    await form.getByRole("button", { name: "Add a service" }).click();
    await page.getByRole("heading", { name: "second.ann" }).waitFor();
    await shown(visitor, "services/web.ann");
    const scale = page.getByRole("form", { name: "Scale" });
    await scale.getByLabel("Replicas").fill("4");
    await scale.getByRole("button").click();
    await until("scaled", async () => (await app()).status.replicas === 4);
    await page.locator("[data-ready]").getByText("/4").waitFor();
    const settings = page.getByRole("form", { name: "Settings" });
    await settings.getByLabel("As JSON").fill('{"level": 9}');
    await settings.getByRole("button", { name: "Save" }).click();
    await settings.locator(".field.bad").getByText("level").first().waitFor();
    await settings.getByLabel("As JSON").fill('{"level": 5}');
    await settings.getByRole("button", { name: "Save" }).click();
    await until("set", async () => (await app()).settings.level === 5);
    await page.getByRole("button", { name: "Stop", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Stop" }).click();
    await until("stopped", async () => (await app()).stopped === true);
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await until("started", async () => !(await app()).stopped);
  })],
  ["a quota is changed, and refused at the field",
    async (scene) => as(scene, "admin", { refusals: true }, async (visitor) => {
    const { page } = visitor;
    await shown(visitor, "users");
    await page.getByRole("button", { name: "Change ann" }).click();
    const form = page.getByRole("form", { name: "Quota of ann" });
    await form.getByLabel("Limits").fill("gpu");
    await form.getByRole("button", { name: "Save" }).click();
    await form.locator(".field.bad").getByText("Invalid amount").waitFor();
    await form.getByLabel("Limits").fill("gpu=90 memory=4Ti");
    await form.getByRole("button", { name: "Save" }).click();
    await until("granted", async () => (await scene.call("GET", "/v1/users/ann")).quota.limits.gpu === 90);
    await page.getByText(/gpu: \d+ of 90/).waitFor();
    for (const name of ["gpu", "memory"]) {
      const bar = page.getByRole("img", { name: new RegExp(`^${name}: [1-9].* of (90|4 TiB)$`) });
      assert.ok((await bar.locator(".part").first().evaluate((part) => part.getBoundingClientRect().width)) > 0,
        `some of ${name} is held`);
    }
  })],
  ["the form of a quota is on the screen, with the focus in it",
    async (scene) => as(scene, "admin", { height: 500 }, async (visitor) => {
    const { page } = visitor;
    await shown(visitor, "users");
    for (const name of ["vision", "aud"]) {
      await page.getByRole("button", { name: `Change ${name}` }).click();
      const form = page.getByRole("form", { name: `Quota of ${name}` });
      await form.waitFor();
      const { y, height } = await form.boundingBox();
      assert.ok(y >= 0 && y + height <= 500, `from ${y} on, ${height} tall`);
      assert.ok(await form.getByLabel("Limits").evaluate((field) => field === document.activeElement),
        "one may type at once");
      await judge(visitor, `the quota of ${name}`);
      if (name === "aud") await form.getByRole("button", { name: "Close" }).click();
      else await page.keyboard.press("Escape");
      await form.waitFor({ state: "hidden" });
    }
  })],
  ["a resource is removed from a quota", async (scene) => as(scene, "admin", {}, async (visitor) => {
    const { page } = visitor, STEPS = ["limits", "guarantees", "admitted"],
      form = page.getByRole("form", { name: "Quota of aud" });
    const names = async () => { const { quota } = await scene.call("GET", "/v1/users/aud");
      return STEPS.map((step) => Object.keys(quota?.[step] ?? {}).sort().join()).join("/"); };
    await shown(visitor, "users");
    const row = page.getByRole("group", { name: "Users" }).getByRole("row").filter({ hasText: "aud" });
    for (const [amounts, want, text] of [["gpu=9 cpu=90", "cpu,gpu/cpu,gpu/cpu,gpu", "cpu: 0 of 90"],
      ["cpu=80", "cpu/cpu/cpu", "cpu: 0 of 80"], ["", "//", "no quota"]]) {
      await page.getByRole("button", { name: "Change aud" }).click();
      for (const label of ["Limits", "Guarantees", "Admitted"]) await form.getByLabel(label).fill(amounts);
      await form.getByRole("button", { name: "Save" }).click();
      await until(`aud has ${want}`, async () => (await names()) === want);
      await form.waitFor({ state: "hidden" });
      await row.getByText(text).waitFor();
    }
  })],
  ["past use, fair shares, records and their cost", async (scene) => as(scene, "admin", {}, async (visitor) => {
    const { page } = visitor;
    await shown(visitor, "users");
    await page.getByText("No prices are set").waitFor();
    const done = await endedJob(scene, "ann", { state: "ended", exit: 0 });
    await scene.call("PATCH", "/v1/system/settings", { prices: "currency: EUR\nprices: {gpu: 3600000, cpu: 36000}\n" });
    await until("its record",
      async () => (await scene.call("GET", "/v1/usage_records?tail=9")).items.some(
      (row) => String(row.workload) === String(done)));
    const usage = await scene.call("GET", "/v1/usage");
    await shown(visitor, "nodes");
    await shown(visitor, "users");
    const want = (3600000 * usage.total.gpu_hours + 36000 * usage.total.core_hours).toFixed(2);
    await page.locator("[data-bill]").getByText(`Total: ${want} EUR.`).waitFor();
    const share = async () => (await scene.call("GET", "/v1/shares")).items.find(
      (i) => i.user === "ann").fair_share.toFixed(2);
    const row = page.getByRole("group", { name: "Users" }).getByRole("row").filter({ hasText: "ann" });
    await until("ann's share", async () => (await row.first().textContent()).includes(await share()));
    await page.getByRole("group", { name: "Latest usage records" }).getByText("ended", { exact: true }).first()
      .waitFor();
    await judge(visitor, "users with a bill");
    await scene.call("PATCH", "/v1/system/settings", { prices: null });
  })],
  ["a formula is tried while it is written, and saved",
    async (scene) => as(scene, "admin", { refusals: true }, async (visitor) => {
    const { page } = visitor;
    await shown(visitor, "policies");
    const box = page.getByRole("textbox", { name: "Formula" });
    await page.getByRole("region", { name: "Order preview" }).first().waitFor();
    await box.fill("return age +");
    await page.getByText(/formula: line 1/).waitFor();
    assert.equal(await box.getAttribute("aria-invalid"), "true");
    await box.fill("return 0 - age");
    await page.getByText(/▲ \d+/).first().waitFor();
    await page.getByLabel("Name").fill("newest-first");
    await page.getByRole("button", { name: "Save" }).click();
    await until("saved", async () => (await scene.call("GET", "/v1/policies")).items.some(
      (p) => p.id === "newest-first"));
    await page.getByRole("button", { name: "Open newest-first" }).waitFor();
  })],
  ["the journal is searched, and a record opened", async (scene) => as(scene, "admin", {}, async (visitor) => {
    const { page } = visitor;
    await scene.call("POST", "/v1/nodes/n22/cordon");
    await scene.call("POST", "/v1/nodes/n22/enable");
    await shown(visitor, "journal?subject=nodes/n22");
    await page.getByText("POST /v1/nodes/{id}/cordon").first().waitFor();
    await page.getByRole("button", { name: /^Open \d+/ }).first().click();
    await page.getByText('"subject": "nodes/n22"').waitFor();
    await shown(visitor, "journal?all=true");
    await page.getByRole("row").filter({ hasText: "decision" }).first().getByRole("button", { name: /^Open \d+/ })
      .click();
    await page.getByRole("region", { name: /^Record \d+/ }).getByRole("heading", { name: "Actions" }).waitFor();
    await page.getByRole("button", { name: "Replay" }).click();
    await page.getByText("Identical bit for bit.").waitFor();
  })],
  ["what if: another policy, and a hypothetical job",
    async (scene) => as(scene, "bob", { refusals: true }, async (visitor) => {
    const { page } = visitor;
    await shown(visitor, "what-if");
    await page.getByLabel("Policy", { exact: true }).selectOption("sjf");
    await page.getByText(/Mean wait of \d+ workloads/).waitFor();
    const nodes = page.getByLabel("Nodes to add, or to remove"), then = page.getByRole("table").last();
    await page.getByLabel("Policy", { exact: true }).selectOption("");
    await page.getByText("Choose a policy or a number of nodes.").waitFor();
    await nodes.fill("half"), await nodes.press("Enter");
    await page.getByText("Enter a whole number").waitFor();
    await nodes.fill("12"), await nodes.press("Enter");
    await then.getByText("starts now", { exact: true }).first().waitFor();
    await page.getByLabel("Or by label").fill("rack=none"),
      await page.getByLabel("Or by label").press("Enter");
    await page.getByText(/no node has the label/).waitFor();
    await page.getByLabel("Or by label").fill(""), await page.getByLabel("Or by label").press("Enter");
    await nodes.fill("-2"), await nodes.press("Enter");
    await page.getByText(/Nodes counted as drained: n\d+, n\d+/).waitFor();
    const form = page.getByRole("form", { name: "Try a hypothetical job" });
    await form.getByLabel("GPUs").fill("8");
    await form.getByRole("button").click();
    await page.getByText(/Position \d+ of \d+ pending workloads/).waitFor();
    await form.getByLabel("Time limit").fill("soon");
    await form.getByRole("button").click();
    await form.locator(".field.bad").waitFor();
  })],
  ...troubleCases({ as, shown, BRIEF }),
];

const scene = await build(url, admin);
scene.line = await Line.open(url);
const wanted = process.env.WEB_CASE;
let failed = 0, number = 0;
for (const [name, run] of cases.filter(
  ([name, , brief]) => (wanted ? name.includes(wanted) : brief || !process.env.WEB_BRIEF))) {
  number++;
  const began = Date.now();
  try {
    await run(scene);
    console.log(`ok ${number} - ${name} # ${((Date.now() - began) / 1000).toFixed(1)} s`);
  } catch (error) {
    failed++;
    const stack = String(error.stack ?? error).split("\n").slice(0, 30).map((line) => `# ${line}`);
    console.log(`not ok ${number} - ${name}\n${stack.join("\n")}`);
  }
}
scene.agent.stop();
scene.line.cut();
await leave();
console.log(`1..${number}`);
process.exit(failed ? 1 : 0);
