// Results: an experiment, a run or an evaluation. The answers first, then the rows, then all sections of a report.
import { html } from "htm/preact";
import { useEffect, useState } from "preact/hooks";
import { address } from "../address.js";
import { Grid } from "../grid/grid.js";
import { Head, Loaded, Problem } from "../parts/frame.js";
import { Histograms } from "../parts/histograms.js";
import { History } from "../parts/history.js";
import { Markup } from "../parts/markup.js";
import { canLabel, isServed, pathOf, useRead } from "../source.js";
import { Name, ended, plural, sentence, shown } from "../text.js";
import { Pairing } from "./compare.js";

export function ResultsPage({ parts }) {
  const name = parts.join("/");
  const found = useRead(pathOf("results", name));
  const said = useRead(pathOf("answers", name));
  const past = useRead(found.value?.history ? pathOf("history", name) : null);
  const [areShown, tellShown] = useState(false);
  const isNext = areShown || found.value?.tasks.length === 0; // the rows and the rest would keep each other waiting
  const sections = useRead(isNext && said.value ? pathOf("sections", name) : null);
  if (found.error) return html`<${Problem} text=${found.error} /><p><a href=${address(["live", name])}>Watch it, if it is being made</a></p>`;
  return html`<${Loaded} found=${found}>${(results) => html`<${Results} ...${results} said=${said} past=${past} sections=${sections} onShown=${() => tellShown(true)} />`}</${Loaded}>`;
}

function Results({ title, experiment, tasks, judges, said, past, sections, onShown }) {
  const within = experiment && { name: experiment, to: address(["e", experiment]) };
  const hasPast = past.error || past.value?.length > 0;
  const shownSections = sections.value ?? [];
  const graded = tasks.filter((task) => task.evaluation);
  useEffect(() => { goToSection(); }, [shownSections.length, hasPast, said.value]);
  return html`<${Head} title=${said.value?.title ?? title} kind="Results" within=${within}><p class="meta">${shown(said.value?.meta ?? plural(tasks.length, "task"))}</p></${Head}>
    ${said.value?.links.length > 0 && html`<p class="pages-of">${said.value.links.map(({ title: to, path }) => html`<a href=${address(path)}>${shown(to)}</a>`)}</p>`}
    <${Loaded} found=${said}>${({ answers }) => html`<${Answers} answers=${answers} />`}</${Loaded}>
    ${isServed && graded.length > 1 && html`<${Pairing} tasks=${graded} />`}
    ${judges.length > 0 && html`<p class="judges-of">Judges: ${listed(judges.map(({ id, name }) => html`<a href=${address(["j", id])}><${Name} of=${name} /></a>`))}</p>`}
    ${canLabel && tasks.length > 0 && html`<p class="label-of">Label: ${listed(tasks.slice(0, MOST_PAIRS).map((task) => html`<a href=${address(["l", task.run])}><${Name} of=${task.task} /></a>`))}${tasks.length > 1 && html`; pairs with <${Name} of=${tasks[0].task} />: ${listed(tasks.slice(1, MOST_PAIRS).map((task) => html`<a href=${address(["l", tasks[0].run], { other: task.run })}><${Name} of=${task.task} /></a>`))}`}</p>`}
    <nav class="within" aria-label="Sections"><ul>${tasks.length === 1 && html`<li><a href="#distributions">Distributions</a></li>`}${tasks.length > 0 && html`<li><a href="#rows">Rows</a></li>`}
      ${hasPast && html`<li><a href="#history">Earlier evaluations</a></li>`}${shownSections.map(({ id, title: name }) => html`<li><a href=${`#${id}`}>${name}</a></li>`)}</ul></nav>
    ${tasks.length === 1 && html`<section id="distributions" aria-labelledby="distributions-title"><h2 id="distributions-title">Distributions</h2><${Histograms} task=${tasks[0]} /></section>`}
    ${tasks.length > 0 && html`<section id="rows" aria-labelledby="rows-title"><h2 id="rows-title">Rows</h2><${Grid} tasks=${tasks} onShown=${onShown} /></section>`}
    ${hasPast && html`<section id="history" aria-labelledby="history-title"><h2 id="history-title">Earlier evaluations</h2><${History} found=${past} /></section>`}
    ${shownSections.map(({ id, title: name, html: markup }) => html`<section id=${id} key=${id} aria-labelledby=${`${id}-title`} class="of-report">
      <h2 id=${`${id}-title`}>${name}</h2><${Markup} of=${markup} /></section>`)}
    ${sections.error && html`<${Problem} text=${sections.error} />`}`;
}

const MOST_PAIRS = 12;

/** Shows the section that the address names, once it is there. */
function goToSection() {
  const id = location.hash.slice(1);
  if (id && !id.startsWith("/")) document.getElementById(id)?.scrollIntoView();
}

const listed = (links) => links.map((link, i) => html`${i ? ", " : ""}${link}`);

/** The questions that people come with, answered. */
export function Answers({ answers }) {
  return html`<div class="answers">${answers.map(({ question, sentences, hint }, i) => html`<div class=${i ? "" : "first"}>
    <h2>${question}</h2>
    ${sentences.length === 1 ? html`<p>${shown(ended(sentences[0]))}</p>` : html`<ul>${sentences.map((each) => html`<li>${shown(ended(each))}</li>`)}</ul>`}
    ${hint && html`<p class="note">${sentence(ended(hint))}</p>`}</div>`)}</div>`;
}
