// How the dashboard is bundled: one script and one style sheet with their content's hash in the name, nothing inline, so
// that the content security policy of berthd may forbid all else.
import { defineConfig } from "vite";

export default defineConfig({
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2022",
    modulePreload: false,
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    reportCompressedSize: false,
    emptyOutDir: true,
  },
  // `npm run dev` beside a berthd: changes are seen at once.
  server: { proxy: { "/v1": process.env.BERTH_SERVER ?? "http://127.0.0.1:3980" } },
});
