// trouble.mjs - cases of pages.mjs with failures or concurrent users: slow answers, broken or silent connections,
// hidden tabs, work that others change meanwhile. Also rare cases: long lists, odd addresses.
import assert from "node:assert/strict";
import { until } from "./scene.mjs";

const rest = (ms) => new Promise((done) => setTimeout(done, ms));

/** Collects the requests of a page that match the pattern. */
function counted(page, pattern) {
  const seen = [];
  page.on("request", (request) => { if (pattern.test(request.url())) seen.push(request.url()); });
  return seen;
}

/** Removes console messages about connections that a case has cut. */
const cutsAreMeant = (visitor) => visitor.trouble.splice(0, visitor.trouble.length,
  ...visitor.trouble.filter((line) => !/net::ERR_/.test(line)));

/** Makes the page hidden or visible for its scripts. */
const hide = (page, hidden) => page.evaluate((value) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => value });
  document.dispatchEvent(new Event("visibilitychange"));
}, hidden);

/** Limits pages of lists to two rows, whatever was requested; with `and`, only for requests with that parameter. */
const shortPages = (page, path, and = "limit") =>
  page.route((url) => url.pathname === path && url.searchParams.has("limit") && url.searchParams.has(and), (route) => {
  const url = new URL(route.request().url());
  url.searchParams.set("limit", "2");
  return route.continue({ url: url.href });
});

const inForm = (page, name) => page.getByRole("form", { name });

/** [name, run, whether it is a brief case]; `as` and `shown` are those of pages.mjs. */
export const troubleCases = ({ as, shown, BRIEF }) => [
  ["a slow answer arrives despite changes meanwhile", async (scene) => as(scene, "admin", {}, async (visitor) => {
    let seen = false;
    await visitor.page.route(/\/v1\/apps\?limit=1000/, async (route) => { await rest(1500); await route.continue(); });
    const changes = (async () => {
      for (let i = 0; !seen; i++) { await scene.call("PATCH", "/v1/apps/web.ann", { weight: 50 + (i % 40) });
      await rest(200); } })();
    try {
      await visitor.go("services");
      await visitor.page.getByRole("link", { name: "web.ann" }).waitFor();
    } finally {
      seen = true;
      await changes;
    }
    await visitor.page.unrouteAll({ behavior: "wait" });
  })],
  ["what would start a job sooner is requested after changes of the job and by a button",
    async (scene) => as(scene, "admin", {}, async (visitor) => {
    const { page } = visitor, id = (await scene.call("GET", "/v1/queue?limit=1")).items[0].id,
      asked = counted(page, /suggest=1/);
    await shown(visitor, `jobs/${id}`);
    await page.getByRole("heading", { name: "Ways to start sooner" }).waitFor();
    await until("asked", () => asked.length === 1);
    for (let i = 0; i < 4; i++) { // other jobs start and end
      const other = await scene.call("POST", "/v1/jobs", { owner: "aud", command: ["true"], requests: { cpu: 1 } });
      await rest(500);
      await scene.call("POST", `/v1/jobs/${other.id}/cancel`);
    }
    await rest(1000);
    assert.equal(asked.length, 1, "what others do is no reason to ask");
    await page.getByRole("button", { name: "Recalculate" }).click();
    await until("asked by the button", () => asked.length === 2);
    await page.getByRole("button", { name: "Hold" }).click();
    await page.getByRole("button", { name: "Release" }).click();
    await until("asked after a change", () => asked.length >= 3); // once for both changes, or for each
  })],
  ["the status of nodes is requested periodically", async (scene) => as(scene, "admin", {}, async (visitor) => {
    const { page } = visitor;
    await page.clock.install();
    await shown(visitor, "nodes");
    const job = await scene.call("POST", "/v1/jobs", { owner: "aud", command: ["sleep"], requests: { cpu: 1 } });
    const [{ node }] = await until("it has a place",
      async () => { const { items } = await scene.call("GET", `/v1/instances?workload=${job.id}`);
      return items.length ? items : null; });
    const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: node, exact: true }) });
    const told = async () => String((await scene.call("GET", `/v1/nodes/${node}`)).status.instances);
    await page.clock.fastForward(31000);
    await until("the row says how many are there now",
      async () => (await row.locator("td").nth(6).textContent()) === (await told()));
    await scene.call("POST", `/v1/jobs/${job.id}/cancel`);
  })],
  ["a daemon that is down has its own message and is retried",
    async (scene) => as(scene, "admin", { at: scene.line.url }, async (visitor) => {
    const { page } = visitor, down = page.getByRole("alert").filter({ hasText: "Cannot connect to berthd" });
    const noBrowserWords = async () => assert.doesNotMatch(await page.locator("body").textContent(),
      /failed to fetch|network ?error/i);
    await shown(visitor, "nodes/n20");
    scene.line.cut();
    await page.getByRole("button", { name: "Cordon" }).click();
    await down.first().waitFor();
    await noBrowserWords();
    await visitor.go("users");
    await down.first().waitFor();
    await noBrowserWords();
    scene.line.mend();
    await page.getByRole("button", { name: "Change ann" }).waitFor();
    assert.equal((await scene.call("GET", "/v1/nodes/n20")).state, "ready", "a verb that failed is not repeated");
    await page.getByRole("button", { name: "Sign out" }).click();
    scene.line.cut();
    await page.getByLabel("Token").fill(scene.tokens.ann);
    await page.getByLabel("Token").press("Enter");
    await down.first().waitFor();
    await noBrowserWords();
    scene.line.mend();
    cutsAreMeant(visitor);
  })],
  ["a silent connection is detected", async (scene) => as(scene, "admin", { at: scene.line.url }, async (visitor) => {
    const { page } = visitor;
    await page.clock.install();
    await shown(visitor, "nodes");
    await page.locator(".line.live").waitFor();
    const row = page.getByRole("row").filter({ hasText: "n21" });
    scene.line.stall();
    await scene.call("POST", "/v1/nodes/n21/cordon");
    await rest(500);
    assert.equal(await row.getByText("cordoned").count(), 0, "the line is dead");
    // the new connection needs time to answer before it counts as silent, too
    await until("another line is taken", async () => {
      await page.clock.fastForward(46000);
      return row.getByText("cordoned").waitFor({ timeout: 5000 }).then(() => true, () => false);
    });
    await scene.call("POST", "/v1/nodes/n21/enable");
    cutsAreMeant(visitor);
  })],
  ["a shell ends at sign-out", async (scene) => as(scene, "ann", {}, async (visitor) => {
    const { page } = visitor;
    await visitor.go("jobs/1");
    await page.getByRole("button", { name: "Open a shell" }).click();
    await page.getByText("welcome").waitFor();
    const call = scene.agent.shells.at(-1);
    assert.ok(!scene.agent.closed.has(call));
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Token").waitFor();
    await until("the agent hears that it is over", () => scene.agent.closed.has(call));
  }), BRIEF],
  ["a log reconnects after a cut and is closed while the page is hidden",
    async (scene) => as(scene, "ann", { at: scene.line.url }, async (visitor) => {
    const { page } = visitor, asked = counted(page, /\/logs\?/);
    await page.clock.install();
    await visitor.go("jobs/1");
    const log = page.getByRole("log", { name: "Output of task 0" });
    await log.getByText("line 3 as it is written").waitFor();
    scene.line.cut();
    await page.getByRole("button", { name: "Reload" }).waitFor();
    scene.line.mend();
    await until("asked again", () => asked.length >= 2);
    await log.getByText("line 1 as it is written").waitFor();
    const call = scene.agent.logs.at(-1);
    await hide(page, true);
    await page.clock.fastForward(21000);
    await until("the line is given back", () => scene.agent.closed.has(call));
    const before = asked.length;
    await page.clock.fastForward(60000);
    await rest(300);
    assert.equal(asked.length, before, "nobody looks");
    await hide(page, false);
    await until("asked when it is shown", () => asked.length > before);
    await log.getByText("line 1 as it is written").waitFor();
    cutsAreMeant(visitor);
  })],
  ["the next instance with the same ordinal has its own log",
    async (scene) => as(scene, "ann", { refusals: true }, async (visitor) => {
    const { page } = visitor, asked = counted(page, /\/logs\?/);
    let shift = 0;
    await page.route(/\/v1\/jobs\/1$/, async (route) => {
      const answer = await route.fetch(), body = await answer.json();
      for (const row of body.status.instances) row.id += shift;
      await route.fulfill({ response: answer, json: body });
    });
    await visitor.go("jobs/1");
    await page.getByRole("log", { name: "Output of task 0" }).getByText("the first line").waitFor();
    assert.equal(asked.length, 1);
    const [, id] = /instances\/(\d+)\/logs/.exec(asked[0]);
    shift = 100000;
    await page.getByRole("button", { name: "Requeue" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Do not requeue" }).click();
    await scene.agent.report(scene.agent.here.map((row) => ({ ...row, state: "running", ready: false })));
    await scene.agent.report(scene.agent.here);
    await until("asked for the other",
      () => asked.some((path) => path.includes(`/instances/${Number(id) + shift}/logs`)));
    await page.unrouteAll({ behavior: "wait" });
  })],
  ["only changed settings are sent", async (scene) => as(scene, "ann", {}, async (visitor) => {
    const { page } = visitor;
    await scene.call("PUT", "/v1/apps/web.ann/settings", { level: 3, size: 10 });
    await shown(visitor, "services/web.ann");
    const form = inForm(page, "Settings");
    await until("all are shown", async () => (await form.getByLabel("As JSON").inputValue()).includes('"size": 10'));
    await form.getByLabel("As JSON").fill('{"level": 4, "size": 10}');
    await scene.call("PATCH", "/v1/apps/web.ann/settings", { size: 77 }); // another user, meanwhile
    await form.getByRole("button", { name: "Save" }).click();
    await until("saved", async () => (await scene.call("GET", "/v1/apps/web.ann")).settings.level === 4);
    assert.equal((await scene.call("GET", "/v1/apps/web.ann")).settings.size, 77);
    await until("shown", async () => (await form.getByLabel("As JSON").inputValue()).includes('"size": 77'));
    await form.getByLabel("As JSON").fill("[1]");
    await form.getByRole("button", { name: "Save" }).click();
    await form.getByText("Settings must be a JSON object").waitFor();
  })],
  ["a form keeps typed values when others scale", async (scene) => as(scene, "ann", {}, async (visitor) => {
    const { page } = visitor, form = inForm(page, "Scale"), replicas = form.getByLabel("Replicas");
    const there = (await scene.call("GET", "/v1/apps/web.ann")).status.replicas;
    const scaled = async (count) => { await scene.call("POST", "/v1/apps/web.ann/scale", { replicas: count });
      await page.locator("[data-ready]").getByText(`/${count}`).waitFor(); };
    const follows = (count) => until(`it says ${count}`, async () => (await replicas.inputValue()) === String(count));
    await shown(visitor, "services/web.ann");
    await scaled(there + 1);
    await follows(there + 1);
    await replicas.fill("1");
    await scaled(there + 2);
    assert.equal(await replicas.inputValue(), "1");
    await replicas.fill(String(there));
    await form.getByRole("button").click();
    await page.locator("[data-ready]").getByText(`/${there}`).waitFor();
    await scaled(there + 1);
    await follows(there + 1); // the typed value was sent
    await scaled(there);
  })],
  ["a form keeps typed values when settings become unreadable",
    async (scene) => as(scene, "ann", { refusals: true }, async (visitor) => {
    const { page } = visitor, form = inForm(page, "Settings");
    await page.clock.install();
    await shown(visitor, "services/web.ann");
    await form.getByLabel("As JSON").fill('{"level": 1}');
    await page.route(/\/v1\/apps\/web\.ann\/settings$/,
      (route) => route.fulfill({ status: 403, json: { error: { message: "not now" } } }));
    const answered = page.waitForResponse(/\/v1\/apps\/web\.ann\/settings$/);
    await page.clock.fastForward(11000);
    await answered;
    await rest(500);
    assert.equal(await form.count(), 1, "it is still there");
    await page.getByRole("region", { name: "Settings" }).getByText("not now").waitFor();
    assert.equal(await form.getByLabel("As JSON").inputValue(), '{"level": 1}');
    await page.unrouteAll({ behavior: "wait" });
  })],
  ["a submission repeated after a lost answer exists once", async (scene) => as(scene, "bob", {}, async (visitor) => {
    const { page } = visitor, keys = [];
    for (const [path, open, send, name] of [["jobs", "Submit a job", "Submit", "lost-once"],
      ["services", "Add a service", "Add a service", "lost-too"]]) {
      const api = `/v1/${path.replace("services", "apps")}`, form = inForm(page, open);
      const made = async () => (await scene.call("GET", `${api}?owner=bob`)).items.filter(
        (item) => item.name === name || item.id === `${name}.bob`).length;
      let lost = false;
      await page.route((url) => url.pathname === api && !url.search, async (route) => {
        if (route.request().method() !== "POST") return route.continue();
        keys.push(await route.request().headerValue("Idempotency-Key"));
        if (lost) return route.continue();
        lost = true;
        await route.fetch();
        return route.abort();
      });
      await shown(visitor, path);
      await page.getByRole("button", { name: open, exact: true }).click();
      await form.getByLabel("Name").fill(name);
      await form.getByLabel("Command").fill("true");
      await form.getByRole("button", { name: send, exact: true }).click();
      await form.getByRole("alert").waitFor();
      assert.equal(await made(), 1, "it was done, and nobody was told");
      await form.getByRole("button", { name: send, exact: true }).click();
      await page.getByRole("heading", { name: new RegExp(name) }).waitFor();
      assert.equal(await made(), 1);
      await page.unrouteAll({ behavior: "wait" });
    }
    assert.ok(keys.length === 4 && keys[0] === keys[1] && keys[2] === keys[3] && keys[1] !== keys[2], keys.join());
    cutsAreMeant(visitor);
  })],
  ["a policy changed by others is not overwritten without a question",
    async (scene) => as(scene, "admin", { refusals: true }, async (visitor) => {
    const { page } = visitor, formula = async () => (await scene.call("GET", "/v1/policies/kept")).formula;
    const box = page.getByRole("textbox", { name: "Formula" }),
      dialog = page.getByRole("dialog", { name: "Overwrite" });
    // The editor knows the revision of what it has saved once its button is enabled again, not before.
    const saved = async (act) => {
      const answered = page.waitForResponse((r) => r.request().method() !== "GET" && r.url().includes("/v1/policies"));
      await act();
      await answered;
      await page.locator("button:enabled", { hasText: /^Save$/ }).waitFor();
    };
    await scene.call("PUT", "/v1/policies/kept", { formula: "return age" });
    await shown(visitor, "policies");
    await box.fill("return 2 * age");
    await page.getByLabel("Name").fill("kept");
    await page.getByRole("button", { name: "Save" }).click();
    await dialog.getByText("Policy kept already exists").waitFor();
    await dialog.getByRole("button", { name: "Cancel" }).click();
    assert.equal(await formula(), "return age");
    await page.getByRole("button", { name: "Save" }).click();
    await saved(() => dialog.getByRole("button", { name: "Overwrite" }).click());
    assert.equal(await formula(), "return 2 * age");
    // The policy is open now: it is saved again without a question until another user has changed it.
    assert.equal(await box.inputValue(), "return 2 * age");
    await box.fill("return 3 * age");
    await saved(() => page.getByRole("button", { name: "Save" }).click());
    assert.equal(await formula(), "return 3 * age");
    await scene.call("PUT", "/v1/policies/kept", { formula: "return 9 * age" });
    await box.fill("return 4 * age");
    await page.getByRole("button", { name: "Save" }).click();
    await dialog.getByText("Policy kept has changed").waitFor();
    assert.equal(await formula(), "return 9 * age");
    await saved(() => dialog.getByRole("button", { name: "Overwrite" }).click());
    assert.equal(await formula(), "return 4 * age");
    // Opened again, it has the new value.
    await scene.call("PUT", "/v1/policies/kept", { formula: "return 7 * age" });
    await page.getByRole("row").filter({ hasText: "return 7 * age" }).getByRole("button", { name: "Open kept" })
      .click();
    await until("opened anew", async () => (await box.inputValue()) === "return 7 * age");
  })],
  ["the queue comes first, and the plan below it says what it leaves out",
    async (scene) => as(scene, "admin", {}, async (visitor) => {
    const { page } = visitor, top = async (what) => (await what.boundingBox()).y;
    await shown(visitor, "queue");
    await page.locator(".gantt rect").first().waitFor();
    assert.ok((await top(page.locator("tbody"))) < (await top(page.locator(".gantt"))));
    assert.equal(await page.getByText("Running workloads are shown only for nodes up to").count(), 0,
      "all nodes are shown");
    await shortPages(page, "/v1/holders");
    await page.reload();
    await page.getByText("Running workloads are shown only for nodes up to n10").waitFor(); // n1, n10, n11, ...
  })],
  ["rows without requested factors show none, and a waiting service is not a job",
    async (scene) => as(scene, "admin", {}, async (visitor) => {
    const { page } = visitor, rows = page.locator("tbody tr"),
      wrong = page.locator('main a[href^="#/jobs/"][href$=".aud"]');
    await scene.call("POST", "/v1/apps",
      { name: "huge", owner: "aud", replicas: 1, requests: { cpu: 5000 }, command: ["serve"] });
    await shortPages(page, "/v1/queue", "factors");
    await shown(visitor, "queue");
    await rows.filter({ hasText: "huge.aud" }).waitFor();
    await rows.nth(1).locator("td.bars .bar .part").first().waitFor({ state: "attached" });
    assert.equal(await rows.nth(2).locator("td.bars").textContent(), "–");
    assert.equal(await rows.nth(2).locator("td.bars .bar").count(), 0);
    assert.equal(await wrong.count(), 0);
    await page.unrouteAll({ behavior: "wait" });
    await shown(visitor, "policies");
    await rows.filter({ hasText: "huge.aud" }).waitFor();
    assert.equal(await wrong.count(), 0);
    await scene.call("DELETE", "/v1/apps/huge.aud");
  })],
  ["lists are read to their end, and jobs from the newest", async (scene) => as(scene, "admin", {}, async (visitor) => {
    const { page } = visitor;
    await shortPages(page, "/v1/users");
    await shortPages(page, "/v1/apps");
    await shortPages(page, "/v1/jobs");
    await shown(visitor, "users");
    for (const name of ["ann", "aud", "bob", "eve", "mia"]) await page.getByRole("button", { name: `Change ${name}` })
      .waitFor();
    const apps = (await scene.call("GET", "/v1/apps")).items.map((app) => app.id);
    for (let i = apps.length; i < 3; i++) apps.push(
      (await scene.call("POST", "/v1/apps", { name: `more${i}`, owner: "ann", replicas: 0, command: ["serve"] })).id);
    await shown(visitor, "services");
    for (const id of apps) await page.getByRole("link", { name: id, exact: true }).waitFor();
    const last = (await scene.call("GET", "/v1/jobs?order=desc&limit=1")).items[0].id,
      first = page.locator("tbody tr").first();
    await shown(visitor, "jobs");
    await first.getByRole("link", { name: String(last), exact: true }).waitFor();
    await page.getByRole("button", { name: "Next" }).click();
    await first.getByRole("link", { name: String(last - 2), exact: true }).waitFor();
  })],
  ["a restarting daemon signs no user out, and a refusal of an old session does not end the new one",
    async (scene) => as(scene, "ann", { refusals: true }, async (visitor) => {
    const { page } = visitor;
    let away = 2;
    await page.route(/\/v1\/whoami$/, (route) => (away-- > 0 ? route.abort() : route.continue()));
    await visitor.go("nodes");
    await page.getByText("berthd is not responding").waitFor();
    await page.getByRole("heading", { name: "Nodes", exact: true }).waitFor();
    cutsAreMeant(visitor);
    let release, held = 0;
    const later = new Promise((done) => { release = done; });
    await page.route(/\/v1\/use$/, async (route) => {
      if (held++) return route.continue();
      await later;
      return route.fulfill({ status: 401, json: {} }).catch(() => {});
    });
    await until("a request is under way", () => held > 0);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Token").fill(scene.tokens.bob);
    await page.getByLabel("Token").press("Enter");
    await page.getByRole("heading", { name: "Nodes", exact: true }).waitFor();
    release();
    await rest(500);
    assert.equal(await page.getByLabel("Token").count(), 0, "bob is still there");
    await page.unrouteAll({ behavior: "wait" });
  })],
  ["the legend counts GPUs, the numbers include the longest wait",
    async (scene) => as(scene, "admin", {}, async (visitor) => {
    const { page } = visitor, { waits } = await scene.call("GET", "/v1/queue?limit=1&waits=true");
    await shown(visitor, "cluster");
    const words = async () => (await page.locator(".legend li").allTextContents())
      .map((text) => Number(/\((\d+) GPUs\)/.exec(text)?.[1] ?? 0));
    const held = async () => (await scene.call("GET", "/v1/use")).total.gpu.held;
    await until("all GPUs that are held have their holder",
      async () => (await words()).reduce((sum, count) => sum + count, 0) === (await held()));
    await until(`no less than ${waits.longest_s} s are told`, async () => {
      const [, minutes = 0, seconds = 0] = /(?:(\d+) min)? ?(?:(\d+) s)?/.exec(
        await page.locator("[data-number=longest]").textContent());
      return Number(minutes) * 60 + Number(seconds) >= Math.min(waits.longest_s, 540);
    });
  })],
  ["typed text stays while the page is redrawn", async (scene) => as(scene, "admin", {}, async (visitor) => {
    const { page } = visitor, asked = counted(page, /\/v1\//), lost = [];
    await page.clock.install();
    for (const [path, label, answer, text] of [["jobs", "User", "jobs", "bob"], ["queue", "Group", "queue", "speech"],
      ["journal", "Actor", "audit", "admin"],
      ["users", "User", "usage_records", "ann"], ["what-if", "Or by label", "nodes", "rack=r3"]]) {
      await shown(visitor, path);
      const field = page.getByLabel(label, { exact: true }), half = Math.floor(text.length / 2);
      await field.pressSequentially(text.slice(0, half));
      const before = asked.length;
      await page.clock.fastForward(31000);
      await until(`${path} asks again`, () => asked.slice(before).some((url) => url.includes(`/v1/${answer}`)));
      await scene.call("POST", "/v1/nodes/n20/cordon"); // another user, meanwhile
      await scene.call("POST", "/v1/nodes/n20/enable");
      await rest(1000);
      if ((await field.inputValue()) !== text.slice(0, half)) lost.push(path);
      await field.pressSequentially(text.slice(half));
      await field.press("Enter");
      await rest(300);
      if ((await field.inputValue()) !== text) lost.push(`${path}, after Enter`);
    }
    assert.deepEqual(lost, []);
    await shown(visitor, "jobs");
    await page.getByLabel("User").pressSequentially("bob");
    await page.getByLabel("User").press("Enter");
    await until("it counts", () => page.url().includes("owner=bob"));
  })],
  ["an open page reports that it has become unreadable",
    async (scene) => as(scene, "admin", { refusals: true }, async (visitor) => {
    const { page } = visitor;
    await page.clock.install();
    for (const path of ["jobs/1", "nodes/n1", "services/web.ann"]) {
      await shown(visitor, path);
      const alert = page.locator(".page > [role=alert]");
      assert.equal(await alert.count(), 0);
      await page.route((url) => url.pathname === `/v1/${path.replace("services", "apps")}`,
        (route) => route.fulfill({ status: 403, json: { error: { message: "not for you any more" } } }));
      await page.clock.fastForward(11000);
      await alert.getByText("not for you any more").waitFor();
      await page.unrouteAll({ behavior: "wait" });
      await page.clock.fastForward(11000);
      await alert.waitFor({ state: "detached" });
    }
  })],
  ["times of yesterday have a date, also the morning after", async (scene) => {
    // a time zone in which it is past one o'clock then
    const later = new Date(Date.now() + 3 * 3600e3), west = later.getUTCHours() - 1;
    await as(scene, "ann", { zone: `Etc/GMT${west > 12 ? `-${24 - west}` : west < 0 ? `-${-west}` : `+${west}`}` },
      async (visitor) => {
      const { page } = visitor, created = page.locator("ol.steps time").first();
      await shown(visitor, "jobs/1");
      assert.match(await created.textContent(), /^\d\d:\d\d:\d\d$/);
      await page.clock.setSystemTime(later);
      await until("the day is told", async () => /^[A-Z]\w+ \d+, 2\d:\d\d$/.test(await created.textContent()));
    });
  }],
  ["an undecodable address is a page, too", async (scene) => as(scene, "admin", { refusals: true }, async (visitor) => {
    await visitor.go("jobs/%");
    await visitor.page.getByRole("heading", { name: "Job %" }).waitFor();
    await shown(visitor, "nodes?find=%");
  }), BRIEF],
  ["drawings follow the system's dark theme", async (scene) => as(scene, "admin", {}, async (visitor) => {
    const { page } = visitor;
    await shown(visitor, "cluster");
    await page.locator(".plot canvas").first().waitFor();
    await page.evaluate(() => {
      for (const canvas of document.querySelectorAll(".plot canvas")) canvas.dataset.old = "1"; });
    const corner = () => page.evaluate(() => {
      const map = document.querySelector(".tiles canvas"),
        copy = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
      copy.drawImage(map, map.width - 1, map.height - 1, 1, 1, 0, 0, 1, 1);
      return copy.getImageData(0, 0, 1, 1).data[0];
    });
    await until("the map is drawn", async () => (await corner()) > 200);
    await page.emulateMedia({ colorScheme: "dark" });
    await page.getByRole("button", { name: "Light" }).waitFor();
    await until("the map is dark", async () => (await corner()) < 60);
    await until("the plots are drawn anew", async () => (await page.locator(".plot canvas[data-old]").count()) === 0);
  })],
  ["on a phone the navigation is one line with the present page visible", async (scene) => {
    for (const language of ["en", "zh"])
      await as(scene, "admin", { width: 390, height: 800, language }, async (visitor) => {
        for (const path of ["cluster", "what-if"]) {
          await shown(visitor, path);
          const nav = await visitor.page.locator("header nav").boundingBox(),
            top = await visitor.page.locator("header.top").boundingBox();
          const here = await visitor.page.locator("header nav a[aria-current]").boundingBox();
          assert.ok(nav.height < 48 && top.height < 100, `${language}: ${nav.height} of ${top.height} px`);
          assert.ok(here.x >= 0 && here.x + here.width <= 390, `${language}: ${path} is at ${here.x}`);
        }
      });
  }, BRIEF],
];
