// Makes the assets of the page from their sources; with --check, says whether they are made of them.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";

const into = new URL("../src/evaluand/view/assets/", import.meta.url);
const LIBRARIES = ["preact", "@preact/signals", "@preact/signals-core", "htm"];

const made = await build({
  entryPoints: { view: "src/main.js", "view-style": "src/style.css" },
  bundle: true,
  minify: true,
  format: "iife",
  target: ["chrome111", "firefox117", "safari16.4"],
  charset: "ascii",
  legalComments: "none",
  outdir: "out",
  write: false,
});

const licences = LIBRARIES.map((name) => {
  const folder = new URL(`node_modules/${name}/`, import.meta.url);
  const { version } = JSON.parse(readFileSync(new URL("package.json", folder), "utf8"));
  return `${name} ${version}\n\n${readFileSync(new URL("LICENSE", folder), "utf8").trim()}\n`;
}).join(`\n${"-".repeat(80)}\n\n`);

/** The digest of all sources, by which a test without Node.js knows whether the assets are made of them. */
function digest() {
  const files = ["build.mjs", "package-lock.json", "package.json", "../src/evaluand/report/assets/report.css"];
  files.push(...readdirSync("src", { recursive: true }).filter((name) => /\.(js|css)$/.test(name)).map((name) => `src/${name}`));
  const hash = createHash("sha256");
  for (const name of files.sort()) hash.update(`${name}\0`).update(readFileSync(name)).update("\0");
  return hash.digest("hex");
}

const assets = { "LICENSES.txt": licences, "sources.sha256": `${digest()}\n` };
for (const file of made.outputFiles) {
  const name = file.path.endsWith(".css") ? "view.css" : "view.js";
  assets[name] = file.text;
}

let stale = 0;
for (const [name, text] of Object.entries(assets)) {
  const file = new URL(name, into);
  if (!process.argv.includes("--check")) writeFileSync(file, text);
  else if (readFileSync(file, "utf8") !== text) {
    console.error(`src/evaluand/view/assets/${name} is not made from these sources: make page`);
    stale = 1;
  }
}
process.exitCode = stale;
