// Bundles the dashboard: one script and one style sheet with a hash of their content in their names, and nothing
// inline, so that berthd's content security policy can forbid everything else.
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
  // `npm run dev` beside a berthd shows changes at once.
  server: { proxy: { "/v1": process.env.BERTH_SERVER ?? "http://127.0.0.1:3980" } },
});
