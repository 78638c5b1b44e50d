// The second entry: one script and one style, to be put into a file by `everstep show TASK --html FILE`.

import { defineConfig } from "vite";

export default defineConfig({
  publicDir: false,
  build: {
    target: "es2022",
    emptyOutDir: false,
    cssCodeSplit: false,
    rollupOptions: { input: "src/report.tsx", output: { format: "iife", entryFileNames: "report/report.js", assetFileNames: "report/report[extname]", inlineDynamicImports: true } },
  },
});
