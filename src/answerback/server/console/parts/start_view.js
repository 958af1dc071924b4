// For newcomers: three commands to try, and how to add the server to a program with a model.

function StartView() {
  const { about, server, lists, calls } = useStore();
  // The last call, or else a tool that changes nothing, because people paste what they see.
  const readOnly = lists.tools.filter((each) => (each.annotations || {}).readOnlyHint);
  const { tool, args } = calls[0] || { tool: firstTool(readOnly.length ? readOnly : lists.tools) };
  return html`<div class="start">
    <section aria-labelledby="start-try">
      <h2 id="start-try">Try it in a terminal</h2>
      <p class="hint">The same tools, without this page. Each command is ready to paste.</p>
      ${commandsToTry(about, server, tool, args).map(
        ([what, text]) => html`<${ToCopy} key=${what} what=${what} text=${text} />`,
      )}
    </section>
    <section aria-labelledby="start-hosts">
      <h2 id="start-hosts">Add it to a program with a model</h2>
      <p class="hint">Then ask the model for something that the tools can do.</p>
      <${HostTabs} hosts=${hostsFor(about, server)} />
    </section>
  </div>`;
}

function ToCopy({ what, text }) {
  return html`<div class="to-copy">
    <div class="to-copy-head"><span>${what}</span><${CopyButton} text=${text} label="Copy" /></div>
    <pre tabindex="0" role="group" aria-label=${what}>${text}</pre>
  </div>`;
}

// A user on another machine has no program to run, but can call the server's address.
function commandsToTry(about, server, tool, given) {
  const own = about.start;
  const target = own ? own.target : shellQuoted(targetOf(server));
  const { member } = server.about;
  const last = member ? `--server ${shellQuoted(member)}` : "";
  const line = (...words) => [own ? own.program : "answerback", ...words, last].filter(Boolean).join(" ");
  const found = [["List what the server has", line("list", target)]];
  if (!tool) return found;
  const args = given || sampleOf(tool.inputSchema, tool.inputSchema) || {};
  found.push([`Call ${tool.name}`, line("call", target, shellQuoted(tool.name), shellArguments(args))]);
  if (server.about.functions) found.push(["Call it over HTTP", curlSample(server, tool, args)]);
  else found.push(["See its arguments", line("call", target, shellQuoted(tool.name), "--help")]);
  return found;
}

// The short form if the command line reads it correctly: `x=7 name=Ada`.
function shellArguments(args) {
  const pairs = Object.entries(args);
  const isPlain = ([name, value]) =>
    /^\w+$/.test(name) && (typeof value === "number" || /^[A-Za-z][\w .,-]*$/.test(value));
  if (!pairs.every(isPlain)) return `--json ${shellQuoted(JSON.stringify(args))}`;
  return pairs.map(([name, value]) => shellQuoted(`${name}=${value}`)).join(" ");
}

// Each host with its steps: text, or text and something to copy.
function hostsFor(about, server) {
  const own = about.start ? about.start.hosts.map(installed) : addressed(server);
  return [...own, chatGpt(server)].map((host) => ({ ...host, id: host.name }));
}

// What `install` does and prints.
function installed({ title, install, file, entry, afterwards }) {
  const next = `${afterwards[0].toUpperCase()}${afterwards.slice(1)}.`;
  const steps = [["Run this. It shows the change, and asks before making it.", install], [next]];
  return { name: title, steps, byHand: [`Or add this to ${file} yourself.`, entry] };
}

// The hosts that connect to an address, or start a foreign command.
function addressed(server) {
  const { target, member } = server.about;
  if (member) return [];
  // The name that a foreign server gives itself is shorter than its command.
  const { name } = server.client().info || server.about;
  const key = name.replace(/[^\w-]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 64) || "server";
  const isCommand = target && !/^https?:/.test(target);
  if (isCommand) return [{ name: "Claude Code", steps: [["Run this.", `claude mcp add ${key} -- ${target}`]] }];
  const url = target || absoluteUrl(server.about.mcp);
  const json = (value) => JSON.stringify(value, null, 2);
  const claude = `claude mcp add --transport http ${key} ${shellQuoted(url)}`;
  return [
    { name: "Claude Code", steps: [["Run this.", claude]] },
    { name: "Cursor", steps: [["Add this to ~/.cursor/mcp.json.", json({ mcpServers: { [key]: { url } } })]] },
    { name: "VS Code", steps: [["Add this to .vscode/mcp.json.", json({ servers: { [key]: { type: "http", url } } })]] },
  ];
}

// ChatGPT runs elsewhere: it needs an address reachable from the internet.
function chatGpt(server) {
  const { target, mcp } = server.about;
  const url = target ? (/^https:/.test(target) ? target : "") : absoluteUrl(mcp);
  const isPublic = /^https:/.test(url) && !/^https:\/\/(localhost|127\.|\[)/.test(url);
  const address = isPublic
    ? ["Create an app there, with this address.", url]
    : ["Create an app there, with the server's public address.", "https://tools.example.com/mcp"];
  const before = [["ChatGPT connects over the internet, so it cannot reach this machine. Serve the app on a host with HTTPS first: see the “Deployment” guide."]];
  return { name: "ChatGPT", steps: [...(isPublic ? [] : before), ["Turn on developer mode in ChatGPT's settings, under “Apps”."], address] };
}

function HostTabs({ hosts }) {
  const [chosen, choose] = useState(hosts[0].id);
  const host = hosts.find((each) => each.id === chosen) || hosts[0];
  return html`<${Tabs} label="Programs" tabs=${hosts} chosen=${host.id} choose=${choose} />
    <ol class="steps">
      ${host.steps.map(([text, code]) => html`<li key=${text}>${code ? html`<${ToCopy} what=${text} text=${code} />` : html`<p>${text}</p>`}</li>`)}
    </ol>
    ${host.byHand ? html`<${ToCopy} what=${host.byHand[0]} text=${host.byHand[1]} />` : ""}`;
}
