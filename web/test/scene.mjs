// scene.mjs - a small cluster for the tests, made over the API: people, nodes, work that runs and work that waits, and
// an agent that says what the tests want it to say.

import { connect, createServer } from "node:net";

export function client(url, token) {
  return async (method, path, body) => {
    const answer = await fetch(url + path, {
      method, headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text ? JSON.parse(text) : null;
  };
}

/** Seconds until an expected event counts as missing; no speed is tested. */
export const PATIENCE = Number(process.env.BERTH_PATIENCE ?? 60);

export async function until(what, ask, seconds = PATIENCE) {
  const end = Date.now() + 1000 * seconds;
  do {
    const answer = await ask();
    if (answer) return answer;
    await new Promise((done) => setTimeout(done, 50));
  } while (Date.now() < end);
  throw new Error(`never: ${what}`);
}

/** A TCP proxy to the daemon that can be cut. */
export class Line {
  static async open(url) {
    const line = new Line(),
      { hostname, port } = new URL(url);
    line.sockets = new Set();
    line.server = createServer((near) => {
      if (line.broken) return near.destroy();
      const far = connect(Number(port), hostname);
      for (const [one, other] of [
        [near, far],
        [far, near],
      ]) {
        line.sockets.add(one);
        one.on("data", (bytes) => {
          if (!one.silent) other.write(bytes);
        });
        one.on("error", () => {});
        one.on("close", () => {
          line.sockets.delete(one);
          other.destroy();
        });
      }
      return undefined;
    });
    await new Promise((done) => line.server.listen(0, "127.0.0.1", done));
    line.server.unref();
    line.url = `http://127.0.0.1:${line.server.address().port}`;
    return line;
  }

  cut() {
    this.broken = true;
    for (const socket of this.sockets) socket.destroy();
  }

  /** Keeps connections open but forwards nothing any more. */
  stall() {
    for (const socket of this.sockets) socket.silent = true;
  }

  mend() {
    this.broken = false;
  }
}

/** The agent of a node: reports its instances as running, and serves sessions. */
export class Agent {
  constructor(url, node, token) {
    Object.assign(this, { url, node, token, call: client(url, token), seq: 0, logs: [], shells: [], closed: new Set(),
      end: new AbortController() });
  }

  report(instances, more = {}) {
    return this.call("POST", `/v1/nodes/${this.node}/report`,
      { epoch: 1, seq: ++this.seq, node: { usage: { cpu: "20", memory: "200Gi" } }, instances, ...more });
  }

  async bring(id, query, body) {
    await fetch(`${this.url}/v1/nodes/${this.node}/calls/${id}?${query}`,
      { method: "POST", headers: { Authorization: `Bearer ${this.token}` }, body });
  }

  async errand(line) {
    if (line.close) {
      this.closed.add(line.call);
    } else if (line.verb === "logs") {
      this.logs.push(line.call);
      await this.bring(line.call, "stream=out", "the first line\n");
      for (let i = 1; line.follow && !this.end.signal.aborted && !this.closed.has(line.call); i++) {
        await this.bring(line.call, "stream=out", `line ${i} as it is written\n`);
        await new Promise((done) => setTimeout(done, 100));
      }
      await this.bring(line.call, "end=true");
    } else if (line.verb === "exec") {
      this.shells.push(line.call);
      await this.bring(line.call, "stream=out", "welcome\n");
    } else if (line.input) {
      const said = Buffer.from(`heard ${atob(line.input)}靠岸\n`);
      await this.bring(line.call, "stream=out", said.subarray(0, -3)); // splits a character
      await this.bring(line.call, "stream=out", said.subarray(-3));
    } else if (line.verb) {
      await this.bring(line.call, "end=true");
    }
  }

  async serve() {
    const answer = await fetch(`${this.url}/v1/nodes/${this.node}/calls?epoch=1`,
      { headers: { Authorization: `Bearer ${this.token}` }, signal: this.end.signal });
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    (async () => {
      let rest = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        const lines = (rest + value).split("\n");
        rest = lines.pop();
        for (const line of lines) if (line.trim()) this.errand(JSON.parse(line)).catch(() => {});
      }
    })().catch(() => {});
  }

  stop() {
    this.end.abort();
  }
}

/** Submits a job for the agent's node, and reports `last` for it after it runs. Returns its id. */
export async function endedJob(scene, owner, last) {
  const { id } = await scene.call("POST", "/v1/jobs",
    { owner, command: ["true"], requests: { cpu: 1 }, node: scene.first.node, retries: 0 });
  const [instance] = await until("it has a place",
    async () => { const { items } = await scene.call("GET", `/v1/instances?workload=${id}`);
    return items.length ? items : null; });
  for (const said of [{ state: "running" }, last]) await scene.agent.report(
    [...scene.agent.here, { id: instance.id, ...said }]);
  return id;
}

const job = (owner, name, gpu, limit) =>
  ({ owner, name, gpu, requests: { cpu: 8, memory: "16Gi" }, time_limit: limit, command: ["python", "train.py"] });

/** Makes 24 nodes with 8 GPUs, users in two groups, 36 jobs that fill most of the cluster, and more that wait. */
export async function build(url, admin) {
  const call = client(url, admin);
  await call("PATCH", "/v1/system/settings", { policy: "multifactor" });
  for (let i = 1; i <= 24; i++)
    await call("POST", "/v1/nodes",
      { id: `n${i}`, allocatable: { cpu: 64, memory: "512Gi" }, gpus: [{ count: 8, model: "H100", memory: "80Gi" }],
      zone: `z${i % 2}`, rack: `r${i % 4}` });
  for (const id of ["vision", "speech"]) await call("POST", "/v1/groups",
    { id, quota: { limits: { gpu: 160 }, guarantees: { gpu: 64 } } });
  const tokens = { admin };
  for (const [id, group, role] of [["ann", "vision", "user"], ["bob", "speech", "user"], ["eve", "vision", "user"],
    ["mia", "vision", "manager"], ["aud", undefined, "auditor"]]) {
    await call("POST", "/v1/users", { id, group, role, ...(id === "ann" ? { quota: { limits: { gpu: 100 } } } : {}) });
    tokens[id] = (await call("POST", "/v1/tokens", { user: id })).token;
  }
  for (let i = 1; i <= 12; i++) for (const owner of ["ann", "bob", "eve"]) await call("POST", "/v1/jobs",
    job(owner, `train-${i}`, (i % 4) + 1, `${(i % 5) + 1}h`));
  for (let i = 1; i <= 12; i++) for (const owner of ["ann", "bob"]) await call("POST", "/v1/jobs",
    job(owner, `large-${i}`, 8, `${(i % 7) + 1}h`));
  await call("POST", "/v1/apps",
    { name: "web", owner: "ann", replicas: 3, requests: { cpu: 1 }, command: ["serve"],
    endpoints: [{ name: "http", protocol: "tcp" }],
    settings: { level: 3 },
      settings_schema: { level: { type: "integer", min: 1, max: 5 }, size: { type: "integer", default: 10 } } });
  const placed = await until("work is placed", async () => {
    const list = (await call("GET", "/v1/instances?limit=1000")).items;
    return list.length >= 40 && list.some((i) => i.workload === "1") ? list : null;
  });
  const first = placed.find((i) => i.workload === "1");
  const agent = new Agent(url, first.node, (await call("POST", "/v1/tokens", { node: first.node })).token);
  agent.here = placed.filter((i) => i.node === first.node)
    .map((i) => ({ id: i.id, state: "running", ready: true, progress: 300, note: "epoch 3",
    usage: { cpu: "3.5", memory: "9Gi" } }));
  await agent.report(agent.here);
  await agent.serve();
  return { call, tokens, agent, first, placed };
}
