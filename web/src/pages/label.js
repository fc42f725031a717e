// Labelling: one answer or pair at a time, by keys, without whose it is or what others said of it.
import { html } from "htm/preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { address, change, state } from "../address.js";
import { Block, Heading, Level } from "../parts/cell.js";
import { Command } from "../parts/command.js";
import { Head, Problem, Waiting } from "../parts/frame.js";
import { canLabel, forget, pathOf, read, send, useRead } from "../source.js";
import { Name, interval, number, plural, shown, word } from "../text.js";

export function LabelPage({ parts: [run = ""] }) {
  if (!canLabel) {
    return html`<${Head} title="Label answers" kind="Labelling" /><p>This page only shows what is stored. To label answers, start it with</p>
      <p><${Command} text="evaluand view --label" /></p>`;
  }
  const [by, other, scale] = ["by", "other", "scale"].map((name) => state.value.get(name) ?? "");
  if (!by) return html`<${WhoPage} run=${run} other=${other} />`;
  return html`<${Session} key=${JSON.stringify([run, by, other])} run=${run} by=${by} other=${other} scale=${scale} />`;
}

function WhoPage({ run, other }) {
  const box = useRef(null);
  useEffect(() => box.current.focus(), []); // `autofocus` is followed once in a document only
  const begin = (event) => {
    event.preventDefault();
    change({ by: new FormData(event.target).get("by").trim() }, false);
  };
  return html`<${Head} title="Label answers" kind="Labelling"><p class="meta">One answer at a time, in random order, without whose it is.</p></${Head}>
    <form class="wanted" onSubmit=${begin}><div class="field"><label for="who">Who labels?</label><input id="who" name="by" required maxlength="60" autocomplete="nickname" ref=${box} /></div><button>Begin</button></form>
    ${!other && html`<${AskedBy} run=${run} />`}<${Back} run=${run} />`;
}

/** The judges whose question people answer by their labels. */
function AskedBy({ run }) {
  const judges = useRead(pathOf("asked", run)).value?.judges ?? [];
  return judges.length > 0 && html`<p class="meta">What is labelled: whatever ${judges.length > 1 ? "the judges" : "the judge"} ${judges.map(({ id, name }, i) => html`${i ? ", " : ""}<a href=${address(["j", id])}><${Name} of=${name} /></a>`)} ${
    judges.length > 1 ? "are" : "is"} asked, so that people and judge can be compared</p>`;
}

const Back = ({ run }) => html`<p class="links"><a href=${address(["r", run])}>Back to the results</a> <span class="muted">which say whose answers these are</span></p>`;

const WINNERS = [["1", "first is better", { winner: "first" }], ["2", "second is better", { winner: "second" }], ["t", "tie", { winner: "tie" }], ["s", "skip", { winner: "skip" }]];

/** What may be chosen: the key, its name, and what is said by it. */
function choicesOf(scale, isPair) {
  if (isPair) return WINNERS;
  const digits = /^(\d)-(\d)$/.exec(scale || "0-1");
  if (!digits) return scale.split(",").map((text) => text.trim()).filter(Boolean).slice(0, 9).map((text, i) => [String(i + 1), text, { label: text }]);
  const [low, high] = [Number(digits[1]), Number(digits[2])];
  if (low === 0 && high === 1) return [["1", "right", { value: 1 }], ["0", "wrong", { value: 0 }]];
  return Array.from({ length: Math.max(high - low + 1, 0) }, (_, i) => [String(low + i), String(low + i), { value: low + i }]);
}

/** The digits that label. */
function keysOf(choices) {
  const digits = choices.map(([key]) => key).filter((key) => /^\d$/.test(key)).sort();
  return digits.length ? `keys ${digits[0]} to ${digits.at(-1)}` : "no digit is a key";
}

function Session({ run, by, other, scale }) {
  const [facts, tell] = useState(null);
  const [fault, setFault] = useState("");
  const [comment, setComment] = useState("");
  const [hasKeys, setKeys] = useState(true);
  const past = useRef([]);
  const busy = useRef(false);
  const boxes = useRef({});
  const isPair = other !== "";
  const choices = choicesOf(scale, isPair);
  const current = facts?.shown ?? null;

  /** Does one thing after the other, whatever keys are pressed meanwhile. */
  const alone = useCallback(async (work) => {
    if (busy.current) return;
    busy.current = true;
    try {
      await work();
      setFault("");
    } catch (error) {
      setFault(error.message);
    } finally {
      busy.current = false;
    }
  }, []);
  const load = useCallback(async (where) => {
    const path = `${pathOf("labelling", run)}?${new URLSearchParams({ by, other, ...where })}`;
    forget(path);
    const found = await read(path);
    forget(path);
    setComment(found.shown?.said?.explanation ?? "");
    tell(found);
  }, [run, by, other]);
  useEffect(() => { alone(() => load({})); }, [load]);

  const choose = (said) => current && alone(async () => {
    await send(pathOf("label", run), { by, other: other || null, key: current.key, explanation: comment.trim() || null, ...said });
    past.current.push(current.place);
    await load({ from: current.place + 1 });
  });
  const skip = () => current && alone(async () => { past.current.push(current.place); await load({ from: current.place + 1 }); });
  const back = () => past.current.length > 0 && alone(async () => { await load({ at: past.current.at(-1) }); past.current.pop(); });
  const again = () => alone(() => load({}));
  const own = (text) => {
    const value = text.trim();
    if (value) choose(value !== "" && Number.isFinite(Number(value)) ? { value: Number(value) } : { label: value });
  };

  const act = (key) => {
    const found = choices.find(([each]) => each === key);
    if (found) choose(found[2]);
    else if (key === "s") skip();
    else if (key === "u" || key === "b") back();
    else if (key === "o" && !isPair) boxes.current.own?.focus();
    else if (key === "c") boxes.current.comment?.focus();
    else if (/^\d$/.test(key)) setFault(`${key} is not among the labels: ${keysOf(choices)}.`);
    else return false;
    return true;
  };
  const latest = useRef(act);
  latest.current = act;
  useEffect(() => {
    if (!hasKeys) return undefined;
    const press = (event) => {
      if (event.key === "Escape" && event.target.closest("input, textarea")) { event.target.blur(); return; }
      if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.target.closest("input:not([type=checkbox]), textarea, select")) return;
      if (latest.current(event.key.toLowerCase())) event.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [hasKeys]);

  if (!facts) return fault ? html`<${Problem} text=${fault} />` : html`<${Waiting} />`;
  return html`<${Head} title=${isPair ? "Which is better?" : "Label answers"} kind="Labelling"><${Progress} facts=${facts} by=${by} place=${current?.place} /></${Head}>
    ${fault && html`<${Problem} text=${fault} />`}
    ${current ? html`<${Item} key=${current.key} item=${current} run=${run} isPair=${isPair} />
      <div class="choices" role="group" aria-label="Your label">
        ${choices.map(([key, name, said]) => html`<button type="button" aria-keyshortcuts=${key} onClick=${() => choose(said)}><kbd>${key}</kbd> ${shown(name)}</button>`)}
        ${!isPair && html`<button type="button" class="plain" onClick=${skip}><kbd>s</kbd> skip</button>
          <div class="field"><label for="own"><kbd>o</kbd> other number or word</label><input id="own" ref=${(box) => { boxes.current.own = box; }} maxlength="200"
            onKeyDown=${(event) => { if (event.key === "Enter") { own(event.target.value); event.target.value = ""; event.target.blur(); } }} /></div>`}
        <div class="field"><label for="comment"><kbd>c</kbd> comment</label><input id="comment" ref=${(box) => { boxes.current.comment = box; }} maxlength="10000" value=${comment}
          onInput=${(event) => setComment(event.target.value)} onKeyDown=${(event) => event.key === "Enter" && event.target.blur()} /></div>
        <button type="button" class="plain" onClick=${back} disabled=${!past.current.length}><kbd>u</kbd> back</button></div>`
      : html`<${Ended} facts=${facts} again=${again} back=${past.current.length ? back : null} />`}
    <p class="label-keys"><label><input type="checkbox" checked=${hasKeys} onChange=${(event) => setKeys(event.target.checked)} /> Single keys label. A label given again replaces the first.</label></p>
    ${!isPair && html`<${Scale} scale=${scale} />`}
    ${!isPair && html`<${AskedBy} run=${run} />`}
    <${Stored} run=${run} by=${by} other=${other} facts=${facts} /><${Back} run=${run} />`;
}

function Progress({ facts: { done, total, noun, by, agreement, most_compared: most, damaged }, by: own, place }) {
  const others = by.filter((each) => each.by !== own);
  return html`<p class="meta" role="status">${word.format(done)} of ${plural(total, noun)} labelled by <${Name} of=${own} />${
      place !== undefined && html` · this is number ${word.format(place + 1)}`}${others.map((each) => html` · <${Name} of=${each.by} />: ${word.format(each.n)}`)}</p>
    <progress class="label-done" max=${total || 1} value=${done} aria-label="Labelled"></progress>
    <${Agreements} agreement=${agreement} noun=${noun} />
    ${most !== null && html`<p class="note">Only the ${word.format(most)} people with the most labels are compared, and of them the ${word.format(most)} pairs with the most answers in common.</p>`}
    ${damaged.map((at) => html`<p class="note">Nothing in this file counts until it is mended: ${shown(at)}</p>`)}`;
}

const percent = (share) => `${Math.round(share * 100)} %`;

const Agreements = ({ agreement, noun }) => agreement.length > 0 && html`<ul class="words">${agreement.map((each) => html`<li><${Name} of=${each.one} /> and <${Name} of=${each.other} /> ${
  each.answers ? `agree on ${word.format(each.agreed)} of ${plural(each.answers, `common ${noun}`)} (${percent(each.agreed / each.answers)})` : `have no ${noun} in common`}${
  each.answers ? each.kappa === null ? "; kappa is undefined, as both always say the same" : `, kappa ${number(each.kappa)}${each.low === null ? "" : `, ${interval(each.low, each.high)}`}` : ""}</li>`)}</ul>`;

function Item({ item, run, isPair }) {
  const command = `evaluand show ${run.slice(0, 12)} --json`;
  const names = isPair ? ["First", "Second"] : ["Answer"];
  const said = item.said && [item.said.winner, item.said.value, item.said.label].filter((each) => each !== null && each !== undefined).join(" ");
  return html`<${Level.Provider} value=${2}><section class="detail" aria-label=${isPair ? "Pair" : "Answer"}>${said && html`<p class="note">You said ${shown(said)}.</p>`}
    <${Heading}>Input</${Heading}><${Block} cell=${item.input} command=${command} />
    ${item.expected !== null && html`<${Heading}>Expected</${Heading}><${Block} cell=${item.expected} command=${command} />`}
    <div class="sides">${item.responses.map((cell, i) => html`<div><${Heading}>${names[i]}</${Heading}><${Block} cell=${cell} command=${command} /></div>`)}</div></section></${Level.Provider}>`;
}

function Ended({ facts: { done, total, noun }, again, back }) {
  const left = total - done;
  return html`<p role="status">${total === 0 ? `There is no ${noun} to label.` : left ? `${plural(left, noun)} skipped.` : `All ${plural(total, noun)} are labelled.`}</p>
    <p class="wanted">${left > 0 && html`<button type="button" onClick=${again}>Show those that were skipped</button>`}${back && html`<button type="button" onClick=${back}><kbd>u</kbd> back</button>`}</p>`;
}

function Scale({ scale }) {
  const set = (event) => { event.preventDefault(); change({ scale: new FormData(event.target).get("scale").trim() }); event.target.querySelector("input").blur(); };
  return html`<details><summary>Scale: ${shown(scale || "0-1")}</summary><form class="wanted" onSubmit=${set}>
    <div class="field"><label for="scale">Numbers such as 0-1 or 1-5, or words with commas such as good, bad</label><input id="scale" name="scale" maxlength="500" value=${scale || "0-1"} /></div><button>Use it</button></form></details>`;
}

/** Stores what is labelled so far, and then says whose answers these were. */
function Stored({ run, by, other, facts }) {
  const [made, tell] = useState(null);
  const store = async () => {
    try {
      const stored = await send(pathOf("label", run, "store"), { by, other: other || null });
      tell(stored);
      for (const path of ["index", "judges", ...(stored.judges ?? []).map(({ id }) => pathOf("judge", id))]) forget(path);
    } catch (error) {
      tell({ fault: error.message });
    }
  };
  return html`<section aria-labelledby="store-title"><h2 id="store-title">Store</h2>
    <p>Each label is in a file already. Stored, ${other ? "the pairs are matches that can be rated" : "the labels of all people are an evaluation, against which judges are measured"}; store again when there are more.</p>
    <p><button type="button" onClick=${store} disabled=${facts.by.length === 0}>Store the labels</button></p>
    <div role="status">${made?.id && html`<p>Stored as <a href=${address(["v", made.id])}><${Name} of=${made.name ?? made.id.slice(0, 12)} /></a>. <a href=${address(["r", run])}>See whose answers these are</a></p>
      ${(made.judges ?? []).map(({ id, name, command }) => html`<p>The judge <a href=${address(["j", id])}><${Name} of=${name} /></a> is not measured by that alone; its card is made by</p><p><${Command} text=${command} /></p>`)}
      ${made.notes.map((note) => html`<p class="note">${shown(note)}</p>`)}<${Agreements} agreement=${made.agreement ?? []} noun="pair" />`}</div>
    ${made?.fault && html`<${Problem} text=${made.fault} />`}</section>`;
}
