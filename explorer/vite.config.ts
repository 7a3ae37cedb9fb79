import { defineConfig } from "vite";

const server = "http://127.0.0.1:8080";

export default defineConfig({
  base: "/ui/",
  build: {
    outDir: "../src/omnigraph/server/ui",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0, // the content security policy allows no data: addresses
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: { proxy: { "/graphs": server, "/session": server, "/healthz": server } },
});
