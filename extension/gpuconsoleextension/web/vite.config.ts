import { defineConfig } from "vite";

// base is relative, so that the page works under any path prefix. Nothing is
// inlined: the page is served with a policy that allows no inline script or style.
export default defineConfig({
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    license: { fileName: "third-party-licenses.md" },
  },
  test: { include: ["test/**/*.test.ts"] },
} as Parameters<typeof defineConfig>[0]);
