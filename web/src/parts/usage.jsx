// usage.jsx - the usage of an instance over time, with its request and its limit, while the page is open.

import { useEffect, useState } from "preact/hooks";
import { get } from "../data/api.js";
import { amount, byRank, resource } from "../data/amount.js";
import { Card } from "./parts.jsx";
import { Plot } from "./plot.jsx";
import { t } from "../text/text.js";

const EVERY_MS = 2000,
  KEPT = 900;

export function Usage({ instance, work }) {
  const [samples, set] = useState([]);
  useEffect(() => {
    const look = async () => {
      if (document.hidden) return;
      const told = await get(`/v1/instances/${instance}`).catch(() => null);
      if (told?.usage) set((old) => [...old.slice(1 - KEPT), { at: Date.now() / 1000, usage: told.usage }]);
    };
    set([]);
    look();
    const timer = setInterval(look, EVERY_MS);
    return () => clearInterval(timer);
  }, [instance]);
  const names = byRank([...new Set(samples.flatMap((s) => Object.keys(s.usage)))]);
  if (!names.length) return null;
  const times = samples.map((s) => s.at);
  const bound = (of, name, color) => {
    const value = amount(of?.[name]);
    return value > 0 ? [{ label: t(color === "--two" ? "usage.requested" : "usage.limit"), color, dash: [6, 4],
      values: times.map(() => value) }] : [];
  };
  return (
    <div class="cards">
      {names.map((name) => (
        <Card title={t("usage.title", { name })}>
          <Plot times={times} label={t("usage.title", { name })} format={(v) => resource(name, v)} lines={[
            { label: t("usage.used"), color: "--one",
              values: samples.map((s) => amount(s.usage[name]?.used ?? s.usage[name])) },
            ...bound(work.requests ?? work.resources, name, "--two"), ...bound(work.limits, name, "--four"),
          ]} />
        </Card>
      ))}
    </div>
  );
}
