// A command line that does the same as the page, to copy.
import { html } from "htm/preact";
import { useState } from "preact/hooks";

export function Command({ text, label = "Copy as command" }) {
  const [copied, tell] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    tell(true);
    setTimeout(() => tell(false), 1500);
  };
  return html`<span class="command"><code>${text}</code>
    <button type="button" class="plain" aria-label=${`${label}: ${text}`} onClick=${copy}>${copied ? "copied" : "copy"}</button></span>`;
}

/** A word of a command line, for any shell of Unix. */
export const shellQuoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`);
