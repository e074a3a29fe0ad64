// Draws the Mermaid diagrams of a page, in the colours of its scheme.
import { mermaid } from "./mermaid/index.js";

const dark = document.body.getAttribute("data-md-color-scheme") === "slate";
mermaid.initialize({ startOnLoad: false, theme: dark ? "dark" : "neutral" });
for (const block of document.querySelectorAll("pre.diagram")) {
    block.textContent = block.querySelector("code").textContent;
}
await mermaid.run({ querySelector: "pre.diagram" });
