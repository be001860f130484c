// submit.jsx - a form for a job: previews its queue position, then submits it.

import { useState } from "preact/hooks";
import { post } from "../data/api.js";
import { usePostOnce, useVerb } from "../data/hooks.js";
import { go } from "../route.js";
import { Button, Card } from "../parts/parts.jsx";
import { Form, numeric, words } from "../parts/form.jsx";
import { t, when } from "../text/text.js";

export const jobFields = () => [
  { name: "name", label: t("jobs.name") },
  { name: "command", label: t("submit.command"), size: 40, placeholder: "python train.py --epochs 3" },
  { name: "cpu", label: t("submit.cpu"), of: "requests.cpu", size: 6 },
  { name: "memory", label: t("submit.memory"), of: "requests.memory", size: 8, placeholder: "4Gi" },
  { name: "gpu", label: t("submit.gpu"), size: 6 },
  { name: "replicas", label: t("submit.tasks"), size: 6 },
  { name: "time_limit", label: t("submit.limit"), size: 8, placeholder: "1h" },
  { name: "queue", label: t("queue.queue"), size: 10 },
  { name: "image", label: t("submit.image"), size: 24 },
];

/** Returns the values of the form as a job of the API. */
export function jobOf(values) {
  const job = { command: words(values.command ?? "") };
  const requests = {};
  for (const name of ["cpu", "memory"]) if (values[name]) requests[name] = numeric(values[name]);
  if (Object.keys(requests).length) job.requests = requests;
  for (const name of ["name", "time_limit", "queue", "image"]) if (values[name]) job[name] = values[name].trim();
  for (const name of ["gpu", "replicas"]) if (values[name]) job[name] = numeric(values[name]);
  return job;
}

export function Forecast({ of }) {
  if (!of) return null;
  const lines = [];
  if (of.now) lines.push(t("forecast.now"));
  else lines.push(t("forecast.place", { position: of.position, of: of.of }));
  if (of.start) lines.push(t("forecast.start", { at: (of.start_guess ? "~ " : "") + when(of.start) }));
  else if (!of.now) lines.push(t("forecast.never"));
  for (const reason of of.reasons ?? []) lines.push(reason.text);
  for (const way of of.sooner ?? []) lines.push(`${t("job.sooner")}: ${way.text ?? way.change ?? JSON.stringify(way)}`);
  return (
    <ul role="status" class="forecast">
      {lines.map((line) => (
        <li>{line}</li>
      ))}
    </ul>
  );
}

export function Submit({ onDone }) {
  const [forecast, setForecast] = useState(null);
  const send = usePostOnce("/v1/jobs");
  const verb = useVerb((values) => send(jobOf(values)), (answer) => { onDone(); go(`/jobs/${answer.id}`); });
  const look = useVerb((values) => post("/v1/jobs?dry_run=true&forecast=1", jobOf(values)),
    (answer) => setForecast(answer.answer.forecast));
  const shown = { ...verb, error: verb.error ?? look.error };
  return (
    <Card title={t("submit.title")}>
      <Form label={t("submit.title")} fields={jobFields()} verb={shown} submit={t("submit.send")}>
        {(values) => <Button verb={look} onClick={() => { verb.clear(); setForecast(null); look.run(values); }}>
          {t("submit.look")}</Button>}
      </Form>
      <Forecast of={forecast} />
    </Card>
  );
}
