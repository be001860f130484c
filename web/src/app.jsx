// app.jsx - the shell of the dashboard: sign-in, navigation, and the chosen page.
//
// To add a page: pages/NAME.jsx, a row in `pages`, and its texts in text/en.js and text/zh.js.

import { useEffect, useRef, useState } from "preact/hooks";
import { get, signedIn, signOut, whenSignedOut } from "./data/api.js";
import { connection, forget, onConnection } from "./data/feed.js";
import { Session } from "./data/session.js";
import { samplesBegin, samplesEnd } from "./data/samples.js";
import { useRoute } from "./route.js";
import { themeNow, themeSet, whenTheme } from "./theme.js";
import { languageNow, languages, languageSet, t } from "./text/text.js";
import { SignIn } from "./pages/sign_in.jsx";
import { Cluster } from "./pages/cluster.jsx";
import { Queue } from "./pages/queue.jsx";
import { Jobs } from "./pages/jobs.jsx";
import { Job } from "./pages/job.jsx";
import { Nodes } from "./pages/nodes.jsx";
import { Node } from "./pages/node.jsx";
import { Services } from "./pages/services.jsx";
import { Service } from "./pages/service.jsx";
import { Users } from "./pages/users.jsx";
import { Policies } from "./pages/policies.jsx";
import { Journal } from "./pages/journal.jsx";
import { WhatIf } from "./pages/what_if.jsx";

const pages = [
  { name: "cluster", all: Cluster },
  { name: "queue", all: Queue },
  { name: "jobs", all: Jobs, one: Job },
  { name: "services", all: Services, one: Service },
  { name: "nodes", all: Nodes, one: Node },
  { name: "users", all: Users },
  { name: "policies", all: Policies },
  { name: "journal", all: Journal },
  { name: "what-if", all: WhatIf },
];

const AGAIN_MS = 2000;

function Line() {
  const [state, set] = useState(connection());
  useEffect(() => onConnection(() => set(connection())), []);
  return (
    <span class={`line ${state}`} role="status">
      {t(`line.${state}`)}
    </span>
  );
}

function Top({ here, who, language, onLanguage, theme }) {
  const nav = useRef(null);
  useEffect(() => {
    // on a phone the pages are a line that scrolls
    const line = nav.current,
      at = line.querySelector("[aria-current]");
    line.scrollLeft = at.offsetLeft - line.offsetLeft - (line.clientWidth - at.offsetWidth) / 2;
  }, [here, language]);
  return (
    <header class="top">
      <a class="brand" href="#/cluster">
        Berth
      </a>
      <nav aria-label={t("nav")}>
        <ul ref={nav}>
          {pages.map((page) => (
            <li>
              <a href={`#/${page.name}`} aria-current={page === here ? "page" : undefined}>{t(`page.${page.name}`)}</a>
            </li>
          ))}
        </ul>
      </nav>
      <div class="me">
        <Line />
        <span class="who" title={t("me.role", { role: who.role })}>
          {who.user} ({who.role})
        </span>
        <label class="hidden" for="language">
          {t("me.language")}
        </label>
        <select id="language" value={language} onChange={(e) => onLanguage(e.currentTarget.value)}>
          {Object.entries(languages).map(([name, title]) => (
            <option value={name}>{title}</option>
          ))}
        </select>
        <button type="button" onClick={() => themeSet(theme === "dark" ? "light" : "dark")}>
          {t(theme === "dark" ? "me.light" : "me.dark")}
        </button>
        <button type="button" onClick={signOut}>
          {t("me.out")}
        </button>
      </div>
    </header>
  );
}

/** Shows the page of the address; moves the focus to its title when the address changes. */
function Shown({ here, id, query }) {
  const main = useRef(null),
    first = useRef(true);
  useEffect(() => {
    if (!first.current) main.current.querySelector("h1")?.focus();
    first.current = false;
    scrollTo(0, 0);
  }, [here, id]);
  const Chosen = id !== undefined && here.one ? here.one : here.all;
  return (
    <main id="main" ref={main} data-page={id === undefined ? here.name : `${here.name}/${id}`}>
      <Chosen key={`${here.name}/${id ?? ""}`} id={id} query={query} />
    </main>
  );
}

/** Shown if there is a token but no daemon: it restarts, or cannot be reached. */
function NoDaemon() {
  return (
    <main class="sign-in card">
      <h1>Berth</h1>
      <p role="status">{t("lost.text")}</p>
      <button type="button" onClick={signOut}>
        {t("me.out")}
      </button>
    </main>
  );
}

export function App() {
  const [who, setWho] = useState(null);
  const [asking, setAsking] = useState(signedIn());
  const [theme, setTheme] = useState(themeNow());
  const [language, setLanguage] = useState(languageNow());
  const { path, query } = useRoute();

  const enter = () =>
    get("/v1/whoami").then((told) => {
      setWho(told);
      setAsking(false);
      samplesBegin();
    });
  useEffect(() => {
    let timer = 0;
    const begin = () =>
      enter().catch(() => {
        if (!signedIn()) return; // the daemon has said so
        setAsking("lost");
        timer = setTimeout(begin, AGAIN_MS);
      });
    whenSignedOut(() => {
      clearTimeout(timer);
      samplesEnd();
      forget();
      setWho(null);
      setAsking(false);
    });
    whenTheme(setTheme);
    if (signedIn()) begin();
  }, []);
  const onLanguage = (name) => {
    languageSet(name);
    setLanguage(name);
  };

  if (asking === "lost") return <NoDaemon />;
  if (asking)
    return (
      <p class="sign-in" role="status">
        {t("loading")}
      </p>
    );
  if (!who) return <SignIn onEnter={enter} />;
  const here = pages.find((page) => page.name === path[0]) ?? pages[0];
  return (
    <Session.Provider value={{ who, theme, language }}>
      <a class="skip" href="#main"
        onClick={(e) => { e.preventDefault(); document.getElementById("main").querySelector("h1").focus(); }}>
        {t("skip")}
      </a>
      <Top {...{ here, who, language, onLanguage, theme }} />
      <Shown key={language} here={here} id={path[1]} query={query} />
    </Session.Provider>
  );
}
