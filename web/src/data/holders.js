// holders.js - which instances hold which devices of all nodes: listed page by page, then updated by the stream of
// instances.
//
// Instances that the user may not see have no events; so the holders are listed again periodically.

import { useEffect, useRef, useState } from "preact/hooks";
import { get, query } from "./api.js";
import { listen } from "./feed.js";
import { pause } from "./stream.js";

const AGAIN_MS = 30000,
  FAILED_MS = 2000,
  PAGE = 500;
const HOLDS = new Set(["assigned", "starting", "running", "stopping", "lost"]);

export class Holders {
  constructor(signal, tell) {
    this.nodes = new Map(); // node -> Map of key -> holder
    this.byInstance = new Map(); // instance -> node
    this.works = new Map(); // workload -> {owner, group, kind, name}
    this.ready = false;
    this.version = 0;
    this.signal = signal; // aborted when no component uses it any more
    this.tell = tell;
    this.unknown = new Set(); // nodes whose holders must be requested
    this.asking = false;
    this.heard = new Set(); // lists of events since the start of each request
  }

  /**
   * Gives what `ask` brings to `take`, then again what was heard meanwhile: the answer is older, as far as it tells of
   * that.
   */
  async meanwhile(ask, take) {
    const events = [];
    this.heard.add(events);
    try {
      take(await ask());
    } finally {
      this.heard.delete(events);
    }
    for (const [event, id] of events) this.apply(event, id);
    this.tell();
  }

  async load() {
    await this.meanwhile(
      async () => {
        const fresh = { nodes: new Map(), byInstance: new Map(), works: new Map() };
        let after;
        do {
          const page = await get(query("/v1/holders", { all: true, limit: PAGE, after }), { signal: this.signal });
          for (const item of page.items) this.add(fresh, item);
          after = page.continue;
        } while (after !== undefined);
        return fresh;
      },
      (fresh) => {
        Object.assign(this, fresh); // with it goes what was known of work that is over
        this.ready = true;
      },
    );
  }

  add({ nodes, byInstance, works }, item) {
    const gpus = (item.devices ?? []).map((name) => Number(name.slice(3)));
    const key = item.instance !== undefined ? String(item.instance) : `other ${nodes.get(item.node)?.size ?? 0}`;
    if (!nodes.has(item.node)) nodes.set(item.node, new Map());
    nodes.get(item.node).set(key, { ...item, gpus });
    if (item.instance === undefined) return;
    byInstance.set(key, item.node);
    works.set(item.workload, { owner: item.owner, group: item.group, kind: item.kind, name: item.name });
  }

  drop(id) {
    this.nodes.get(this.byInstance.get(id))?.delete(id);
    this.byInstance.delete(id);
  }

  change(event, id) {
    for (const events of this.heard) events.push([event, id]);
    this.apply(event, id);
    this.tell();
  }

  apply(event, id) {
    this.drop(id);
    const o = event.object;
    if (o && HOLDS.has(o.state)) {
      const work = this.works.get(o.workload);
      if (!work) this.ask(o.node);
      if (!this.nodes.has(o.node)) this.nodes.set(o.node, new Map());
      this.nodes.get(o.node).set(id,
        { node: o.node, state: o.state, gpus: o.gpus ?? [], workload: o.workload, instance: o.id,
        since: o.started ?? o.since, ...work });
      this.byInstance.set(id, o.node);
    }
  }

  /** The stream does not tell the owner, so this requests the node's holders, soon, and once for many changes. */
  ask(node) {
    this.unknown.add(node);
    this.askSoon(50);
  }

  askSoon(ms) {
    if (this.asking) return;
    this.asking = true;
    pause(ms, this.signal).then(() => this.askAll());
  }

  async askAll() {
    if (this.signal.aborted) return;
    const nodes = [...this.unknown].slice(0, 20);
    for (const node of nodes) this.unknown.delete(node); // a node with an event from here on is requested again
    await Promise.all(nodes.map((node) => this.askOne(node).catch(() => {})));
    this.asking = false;
    if (this.unknown.size) this.askSoon(500);
  }

  askOne(node) {
    return this.meanwhile(
      () => get(query("/v1/holders", { node }), { signal: this.signal }),
      (told) => {
        for (const id of this.nodes.get(node)?.keys() ?? []) this.byInstance.delete(id);
        this.nodes.set(node, new Map());
        for (const item of told.items) this.add(this, item);
      },
    );
  }
}

/** Returns {nodes: Map of node -> Map of holders, ready, version}, updated at most once per frame. */
export function useHolders() {
  const [, again] = useState(0);
  const held = useRef(null);
  held.current ??= new Holders(AbortSignal.abort(), () => {});
  useEffect(() => {
    const control = new AbortController();
    let frame = 0;
    held.current = new Holders(control.signal,
      () => { held.current.version++; frame ||= requestAnimationFrame(() => { frame = 0; again((n) => n + 1); }); });
    let timer = 0;
    const load = async () => {
      const good =
        document.hidden ||
        (await held.current.load().then(
          () => true,
          () => false,
        ));
      if (!control.signal.aborted) timer = setTimeout(load, good ? AGAIN_MS : FAILED_MS);
    };
    const end = listen("instances", (event, id) => held.current.change(event, id));
    load();
    return () => {
      end();
      clearTimeout(timer);
      control.abort();
      cancelAnimationFrame(frame);
    };
  }, []);
  return held.current;
}

/** Returns the owner, as far as the user may know. */
export const holderName = (holder) => holder.owner ?? (holder.group ? `(${holder.group})` : "");
