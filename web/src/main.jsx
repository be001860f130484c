// main.jsx - the start: sets theme and language before anything is drawn, then shows the shell.

import { render } from "preact";
import { App } from "./app.jsx";
import { themeBegin } from "./theme.js";
import { languageNow, languageSet } from "./text/text.js";
import "./style.css";

themeBegin();
languageSet(languageNow());
render(<App />, document.getElementById("app"));
