// Makes the scripts and style sheets of the page and of reports from their sources; with --check, says whether they are made of them.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";

const into = new URL("../src/evaluand/", import.meta.url);
const LIBRARIES = ["preact", "@preact/signals", "@preact/signals-core", "htm"].map((name) => {
  const folder = new URL(`node_modules/${name}/`, import.meta.url);
  const { version } = JSON.parse(readFileSync(new URL("package.json", folder), "utf8"));
  const licence = readFileSync(new URL("LICENSE", folder), "utf8").trim();
  return { name: `${name} ${version}`, licence, copyright: /^ *(Copyright (?:\(c\) )?\d.*)$/m.exec(licence)[1] };
});

/** What reports say of the libraries that they hold copies of: whose they are, and the texts of their licences. */
function notice() {
  const isApache = ({ licence }) => licence.startsWith("Apache License");
  const named = (all) => all.map(({ name, copyright }) => `${name}: ${copyright}`).join("\n");
  const mit = LIBRARIES.filter((each) => !isApache(each));
  const [, boilerplate] = /(Licensed under the Apache License[^]*)$/.exec(LIBRARIES.find(isApache).licence);
  const plain = (text) => text.replace(/^ +/gm, "").trim();
  const [, permission] = /(Permission is hereby granted[^]*)$/.exec(mit[0].licence);
  return `/* Contains\n${named(mit)}\n${plain(permission)}\n\nand\n${named(LIBRARIES.filter(isApache))}\n${plain(boilerplate)} */`;
}

const made = await build({
  entryPoints: {
    "report/page/assets/view": "src/main.js", "report/page/assets/view-style": "src/style.css",
    "report/assets/report": "src/report.js", "report/assets/report-style": "src/report.css",
  },
  bundle: true,
  minify: true,
  format: "iife",
  target: ["chrome111", "firefox117", "safari16.4"],
  charset: "ascii",
  legalComments: "none",
  outdir: "out",
  write: false,
});

/** The digest of all sources, by which a test without Node.js knows whether the assets are made of them. */
function digest() {
  const files = ["build.mjs", "package-lock.json", "package.json"];
  files.push(...readdirSync("src", { recursive: true }).filter((name) => /\.(js|css)$/.test(name)).map((name) => `src/${name}`));
  const hash = createHash("sha256");
  for (const name of files.sort()) hash.update(`${name}\0`).update(readFileSync(name)).update("\0");
  return hash.digest("hex");
}

const assets = {
  "report/page/assets/LICENSES.txt": LIBRARIES.map(({ name, licence }) => `${name}\n\n${licence}\n`).join(`\n${"-".repeat(80)}\n\n`),
  "report/page/assets/sources.sha256": `${digest()}\n`,
};
for (const { path, text } of made.outputFiles) {
  const name = path.split("/out/")[1].replace("-style.css", ".css");
  assets[name] = name === "report/assets/report.js" ? `${notice()}\n${text}` : text;
}

let stale = 0;
for (const [name, text] of Object.entries(assets)) {
  const file = new URL(name, into);
  if (!process.argv.includes("--check")) writeFileSync(file, text);
  else if (readFileSync(file, "utf8") !== text) {
    console.error(`src/evaluand/${name} is not made from these sources: make page`);
    stale = 1;
  }
}
process.exitCode = stale;
